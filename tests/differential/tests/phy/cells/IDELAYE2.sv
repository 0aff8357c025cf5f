module IDELAYE2 #(
    parameter DELAY_SRC = "IDATAIN",
    parameter HIGH_PERFORMANCE_MODE = "FALSE",
    parameter IDELAY_TYPE = "FIXED",
    parameter integer IDELAY_VALUE = 0,
    parameter real REFCLK_FREQUENCY = 200.0
) (
    input wire IDATAIN,
    output wire DATAOUT,
    output wire [4:0] CNTVALUEOUT,
    input wire [4:0] CNTVALUEIN,
    input wire C,
    input wire CE,
    input wire CINVCTRL,
    input wire DATAIN,
    input wire INC,
    input wire LD,
    input wire LDPIPEEN,
    input wire REGRST
);
    wire unused = &{DELAY_SRC == "IDATAIN", HIGH_PERFORMANCE_MODE == "TRUE", IDELAY_TYPE == "FIXED", REFCLK_FREQUENCY > 190.0,
                    CNTVALUEIN, C, CE, CINVCTRL, DATAIN, INC, LD, LDPIPEEN, REGRST};
    assign CNTVALUEOUT = IDELAY_VALUE[4:0];
    assign #(IDELAY_VALUE * 78) DATAOUT = IDATAIN;
endmodule
