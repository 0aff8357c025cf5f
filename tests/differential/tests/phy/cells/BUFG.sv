module BUFG (
    input wire I,
    output wire O
);
    // The way of a clock through the device.
    assign #2000 O = I;
endmodule
