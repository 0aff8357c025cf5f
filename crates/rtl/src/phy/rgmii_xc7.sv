// RGMII of 1 Gbit/s by the cells of pins of a Xilinx 7: four bits at each edge, the low ones at the rising one.
//
// The PHY delays rgmii_rxc into the middle of its data. A tap delays by 78 ps with a reference clock of 200 MHz: RX_TAPS is for what
// rgmii_rxc takes to the cells of its data, as the timing report says it. txc_clk is clk, if the PHY delays rgmii_txc too, or a quarter of
// a cycle later.
module rgmii_xc7 #(
    parameter integer RX_TAPS = 26
) (
    input wire rgmii_rxc,
    input wire rgmii_rx_ctl,
    input wire [3:0] rgmii_rxd,
    output wire rgmii_txc,
    output wire rgmii_tx_ctl,
    output wire [3:0] rgmii_txd,
    // The clock of the PHY, and what comes with it.
    output wire rx_clk,
    output wire [7:0] rx_data,
    output wire rx_dv,
    output wire rx_er,
    input wire clk,
    input wire txc_clk,
    input wire [7:0] tx_data,
    input wire tx_en,
    input wire tx_er
);
    wire [4:0] rx_pins, rx_low, rx_high;
    wire [4:0] tx_low = {tx_en, tx_data[3:0]};
    wire [4:0] tx_high = {tx_en ^ tx_er, tx_data[7:4]};
    wire [4:0] tx_pins;
    BUFG rx_buffer (.I(rgmii_rxc), .O(rx_clk));
    genvar pin;
    generate
        for (pin = 0; pin < 5; pin = pin + 1) begin : pins
            wire late;
            wire [4:0] taps;
            wire unused = &{1'b0, taps};
            IDELAYE2 #(
                .DELAY_SRC("IDATAIN"),
                .HIGH_PERFORMANCE_MODE("TRUE"),
                .IDELAY_TYPE("FIXED"),
                .IDELAY_VALUE(RX_TAPS),
                .REFCLK_FREQUENCY(200.0)
            ) delay (
                .IDATAIN(rx_pins[pin]),
                .DATAOUT(late),
                .CNTVALUEOUT(taps),
                .CNTVALUEIN(5'd0),
                .C(1'b0),
                .CE(1'b0),
                .CINVCTRL(1'b0),
                .DATAIN(1'b0),
                .INC(1'b0),
                .LD(1'b0),
                .LDPIPEEN(1'b0),
                .REGRST(1'b0)
            );
            IDDR #(.DDR_CLK_EDGE("SAME_EDGE_PIPELINED")) rx (
                .D(late),
                .C(rx_clk),
                .CE(1'b1),
                .R(1'b0),
                .S(1'b0),
                .Q1(rx_low[pin]),
                .Q2(rx_high[pin])
            );
            ODDR #(.DDR_CLK_EDGE("SAME_EDGE")) tx (
                .C(clk),
                .CE(1'b1),
                .R(1'b0),
                .S(1'b0),
                .D1(tx_low[pin]),
                .D2(tx_high[pin]),
                .Q(tx_pins[pin])
            );
        end
    endgenerate
    ODDR #(.DDR_CLK_EDGE("SAME_EDGE")) tx_clock (
        .C(txc_clk),
        .CE(1'b1),
        .R(1'b0),
        .S(1'b0),
        .D1(1'b1),
        .D2(1'b0),
        .Q(rgmii_txc)
    );
    assign rx_pins = {rgmii_rx_ctl, rgmii_rxd};
    assign {rgmii_tx_ctl, rgmii_txd} = tx_pins;
    assign rx_data = {rx_high[3:0], rx_low[3:0]};
    assign rx_dv = rx_low[4];
    assign rx_er = rx_low[4] ^ rx_high[4];
endmodule
