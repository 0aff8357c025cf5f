// RGMII of 1 Gbit/s by the cells of pins of a Lattice ECP5: four bits at each edge, the low ones at the rising one. The PHY delays rgmii_rxc
// into the middle of its data.
//
// A tap delays by 25 ps. RX_TAPS is for what rgmii_rxc takes to the cells of its data, which depends on the device and the pins. TX_TAPS
// puts rgmii_txc into the middle of its data; 0: the PHY does.
module rgmii_ecp5 #(
    parameter integer RX_TAPS = 80,
    parameter integer TX_TAPS = 80
) (
    input wire rgmii_rxc,
    input wire rgmii_rx_ctl,
    input wire [3:0] rgmii_rxd,
    output wire rgmii_txc,
    output wire rgmii_tx_ctl,
    output wire [3:0] rgmii_txd,
    // With the clock of the PHY, rgmii_rxc.
    output wire [7:0] rx_data,
    output wire rx_dv,
    output wire rx_er,
    input wire clk,
    input wire [7:0] tx_data,
    input wire tx_en,
    input wire tx_er
);
    wire [4:0] rx_pins, rx_low, rx_high;
    wire [4:0] tx_low = {tx_en, tx_data[3:0]};
    wire [4:0] tx_high = {tx_en ^ tx_er, tx_data[7:4]};
    wire [4:0] tx_pins;
    wire txc;
    genvar pin;
    generate
        for (pin = 0; pin < 5; pin = pin + 1) begin : pins
            wire late;
            DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(RX_TAPS)) delay (.A(rx_pins[pin]), .Z(late));
            IDDRX1F rx (.D(late), .SCLK(rgmii_rxc), .RST(1'b0), .Q0(rx_low[pin]), .Q1(rx_high[pin]));
            ODDRX1F tx (.SCLK(clk), .RST(1'b0), .D0(tx_low[pin]), .D1(tx_high[pin]), .Q(tx_pins[pin]));
        end
    endgenerate
    ODDRX1F tx_clock (.SCLK(clk), .RST(1'b0), .D0(1'b1), .D1(1'b0), .Q(txc));
    DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(TX_TAPS)) tx_delay (.A(txc), .Z(rgmii_txc));
    assign rx_pins = {rgmii_rx_ctl, rgmii_rxd};
    assign {rgmii_tx_ctl, rgmii_txd} = tx_pins;
    assign rx_data = {rx_high[3:0], rx_low[3:0]};
    assign rx_dv = rx_low[4];
    assign rx_er = rx_low[4] ^ rx_high[4];
endmodule
