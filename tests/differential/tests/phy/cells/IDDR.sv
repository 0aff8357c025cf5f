module IDDR #(
    parameter DDR_CLK_EDGE = "OPPOSITE_EDGE"
) (
    input wire D,
    input wire C,
    input wire CE,
    input wire R,
    input wire S,
    output reg Q1,
    output reg Q2
);
    wire unused = DDR_CLK_EDGE == "SAME_EDGE_PIPELINED";
    reg rising, falling;
    always @(posedge C) if (CE) rising <= (D | S) & ~R;
    always @(negedge C) if (CE) falling <= (D | S) & ~R;
    // Both bits of a cycle at its end.
    always @(posedge C) if (CE) {Q1, Q2} <= {rising, falling};
endmodule
