module ODDR #(
    parameter DDR_CLK_EDGE = "OPPOSITE_EDGE"
) (
    input wire C,
    input wire CE,
    input wire R,
    input wire S,
    input wire D1,
    input wire D2,
    output wire Q
);
    wire unused = DDR_CLK_EDGE == "SAME_EDGE";
    reg high, low;
    always @(posedge C) if (CE) {high, low} <= R ? 2'b00 : {D1 | S, D2 | S};
    assign #500 Q = C ? high : low;
endmodule
