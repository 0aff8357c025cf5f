module PLLE2_BASE #(
    parameter real CLKIN1_PERIOD = 0.0,
    parameter integer DIVCLK_DIVIDE = 1,
    parameter integer CLKFBOUT_MULT = 5,
    parameter integer CLKOUT0_DIVIDE = 1,
    parameter integer CLKOUT1_DIVIDE = 1,
    parameter real CLKOUT1_PHASE = 0.0,
    parameter integer CLKOUT2_DIVIDE = 1
) (
    input wire CLKIN1,
    input wire CLKFBIN,
    input wire RST,
    input wire PWRDWN,
    output wire CLKFBOUT,
    output wire CLKOUT0,
    output wire CLKOUT1,
    output wire CLKOUT2,
    output wire CLKOUT3,
    output wire CLKOUT4,
    output wire CLKOUT5,
    output wire LOCKED
);
    // Of 1 GHz.
    wire vco = CLKFBOUT_MULT == 8 && DIVCLK_DIVIDE == 1 && CLKIN1_PERIOD == 8.0;
    wire divided = CLKOUT0_DIVIDE == 8 && CLKOUT1_DIVIDE == 8 && CLKOUT1_PHASE == 90.0 && CLKOUT2_DIVIDE == 5;
    wire unused = CLKFBIN;
    assign LOCKED = vco & divided & ~RST & ~PWRDWN;
    assign {CLKFBOUT, CLKOUT0, CLKOUT1, CLKOUT2, CLKOUT3, CLKOUT4, CLKOUT5} = {7{CLKIN1}};
endmodule
