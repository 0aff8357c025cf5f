// Clocks of RGMII for a Xilinx 7: 125 MHz, the same a quarter of a cycle later, and the reference of delays at pins, 200 MHz.
module clocks_xc7 (
    input wire clk_125,
    input wire rst,
    output wire clk,
    output wire clk_90,
    output wire locked
);
    wire feedback, zero, quarter, reference, clk_200, ready;
    wire [2:0] others;
    wire unused = &{1'b0, others, ready};
    PLLE2_BASE #(
        .CLKIN1_PERIOD(8.0),
        .DIVCLK_DIVIDE(1),
        .CLKFBOUT_MULT(8),
        .CLKOUT0_DIVIDE(8),
        .CLKOUT1_DIVIDE(8),
        .CLKOUT1_PHASE(90.0),
        .CLKOUT2_DIVIDE(5)
    ) pll (
        .CLKIN1(clk_125),
        .CLKFBIN(feedback),
        .CLKFBOUT(feedback),
        .RST(rst),
        .PWRDWN(1'b0),
        .CLKOUT0(zero),
        .CLKOUT1(quarter),
        .CLKOUT2(reference),
        .CLKOUT3(others[0]),
        .CLKOUT4(others[1]),
        .CLKOUT5(others[2]),
        .LOCKED(locked)
    );
    BUFG zero_buffer (.I(zero), .O(clk));
    BUFG quarter_buffer (.I(quarter), .O(clk_90));
    BUFG reference_buffer (.I(reference), .O(clk_200));
    IDELAYCTRL delays (.REFCLK(clk_200), .RST(~locked), .RDY(ready));
endmodule
