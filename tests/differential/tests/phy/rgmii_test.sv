// Octets from one RGMII to another whose clock is the same: what the pins have at each edge, and what comes in.
`timescale 1ps / 1fs
module rgmii_test;
    parameter integer DELAYS = 1;
    reg clk = 0, clk_90 = 0;
    initial forever #4000 clk = ~clk;
    initial begin
        #2000;
        forever #4000 clk_90 = ~clk_90;
    end
    reg [7:0] tx_data = 0;
    reg tx_en = 0, tx_er = 0;
    wire rxc, ctl, txc;
    wire [3:0] d;
    wire [7:0] rx_data;
    wire rx_dv, rx_er, rx_clk;
    // The PHY delays the clock of what it sends.
    reg rxc_late = 0, txc_late = 0;
    always @(clk) rxc_late <= #2500 clk;
    always @(txc) txc_late <= #2000 txc;
    assign rxc = rxc_late;
`ifdef ECP5
    assign rx_clk = rxc;
    rgmii_ecp5 #(.TX_TAPS(DELAYS == 1 ? 80 : 0)) dut (
        .clk(clk),
`else
    rgmii_xc7 dut (
        .clk(clk), .txc_clk(DELAYS == 1 ? clk_90 : clk), .rx_clk(rx_clk),
`endif
        .rgmii_rxc(rxc), .rgmii_rx_ctl(ctl), .rgmii_rxd(d), .rgmii_txc(txc), .rgmii_tx_ctl(ctl), .rgmii_txd(d),
        .rx_data(rx_data), .rx_dv(rx_dv), .rx_er(rx_er), .tx_data(tx_data), .tx_en(tx_en), .tx_er(tx_er)
    );

    // What a PHY sees, with a delay of its own where the wrapper has none: dv and er as RGMII has them.
    wire sample = DELAYS == 1 ? txc : txc_late;
    reg [4:0] rising;
    reg [9:0] pins [0:2047], sent [0:2047], came [0:2047];
    integer of_pins = 0, of_sent = 0, of_came = 0;
    always @(posedge sample) rising = {ctl, d};
    always @(negedge sample) if (rising !== 5'bx && rising[4] | ctl) begin
        pins[of_pins] = {rising[4] ^ ctl, rising[4], d, rising[3:0]};
        of_pins = of_pins + 1;
    end
    always @(posedge rx_clk) if (rx_dv === 1 || rx_er === 1) begin
        came[of_came] = {rx_er, rx_dv, rx_data};
        of_came = of_came + 1;
    end
    integer n;
    initial begin
        repeat (10) @(posedge clk);
        for (n = 0; n < 2000; n = n + 1) begin
            @(posedge clk);
            tx_en <= n % 100 > 12;
            tx_er <= n % 100 > 12 && n % 17 == 0;
            tx_data <= n * 37 + 5;
            if (n % 100 > 12) begin
                sent[of_sent] = {n % 17 == 0, 1'b1, 8'(n * 37 + 5)};
                of_sent = of_sent + 1;
            end
        end
        @(posedge clk);
        tx_en <= 0;
        tx_er <= 0;
        repeat (20) @(posedge clk);
        if (of_sent < 1000 || of_pins != of_sent || of_came != of_sent)
            $display("sent %0d, at pins %0d, came %0d", of_sent, of_pins, of_came);
        for (n = 0; n < of_sent; n = n + 1)
            if (pins[n] !== sent[n] || came[n] !== sent[n]) begin
                $display("octet %0d: sent %h, at pins %h, came %h", n, sent[n], pins[n], came[n]);
                $finish;
            end
        $display("equal");
        $finish;
    end
endmodule
