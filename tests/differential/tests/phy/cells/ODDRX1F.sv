module ODDRX1F (
    input wire SCLK,
    input wire RST,
    input wire D0,
    input wire D1,
    output wire Q
);
    reg high, low;
    always @(posedge SCLK) {high, low} <= RST ? 2'b00 : {D0, D1};
    assign #500 Q = SCLK ? high : low;
endmodule
