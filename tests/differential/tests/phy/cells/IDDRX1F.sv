module IDDRX1F (
    input wire D,
    input wire SCLK,
    input wire RST,
    output reg Q0,
    output reg Q1
);
    // The way of a clock through the device.
    wire late;
    assign #2000 late = SCLK;
    reg rising, falling;
    always @(posedge late) rising <= D & ~RST;
    always @(negedge late) falling <= D & ~RST;
    // Both bits of a cycle at its end.
    always @(posedge late) {Q0, Q1} <= {rising, falling};
endmodule
