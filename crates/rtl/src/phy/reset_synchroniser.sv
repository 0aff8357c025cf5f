// A reset that begins at once and ends with the clock.
module reset_synchroniser (
    input wire clk,
    input wire async_rst,
    output wire rst
);
    (* ASYNC_REG = "TRUE" *)
    reg [2:0] stages;
    always @(posedge clk or posedge async_rst) begin
        if (async_rst) stages <= 3'b111;
        else stages <= {stages[1:0], 1'b0};
    end
    assign rst = stages[2];
endmodule
