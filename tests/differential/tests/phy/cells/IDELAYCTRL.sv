module IDELAYCTRL (
    input wire REFCLK,
    input wire RST,
    output reg RDY
);
    always @(posedge REFCLK or posedge RST) RDY <= ~RST;
endmodule
