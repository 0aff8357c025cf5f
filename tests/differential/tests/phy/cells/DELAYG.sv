module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter integer DEL_VALUE = 0
) (
    input wire A,
    output wire Z
);
    wire unused = DEL_MODE == "USER_DEFINED";
    assign #(DEL_VALUE * 25) Z = A;
endmodule
