// The elastic buffer of a port: octets of frames from the clock of a PHY to that of the device.
//
// Octets of frames and one after each of them, without dv, go through 32 words with pointers in Gray code; what is between frames does not.
// A frame begins to leave when six of its octets are there, or six cycles after its first, and leaves with an octet in each cycle: clocks
// may differ by 200 ppm with frames of 16 Kbyte, and by 1000 ppm with those of 2 Kbyte. A frame that finds no room, or whose next octet
// is not there, ends with an error (er), as which the MAC counts it. rx_rst begins at once, also where rx_clk stands still.
module gmii_elastic (
    input wire rx_clk,
    input wire rx_rst,
    input wire [7:0] rx_data,
    input wire rx_dv,
    input wire rx_er,
    input wire clk,
    input wire rst,
    output reg [7:0] data,
    output reg dv,
    output reg er
);
    // The side of the PHY. Pointers have a bit more than addresses.
    reg [9:0] words [0:31];
    reg [5:0] tail, tail_gray;
    (* ASYNC_REG = "TRUE" *)
    reg [5:0] head_seen_0, head_seen_1;
    reg [7:0] now;
    reg now_dv, now_er;
    // The frame has octets in the buffer; the rest of it is left out.
    reg open, skips;
    wire [5:0] head_seen = {
        head_seen_1[5],
        ^head_seen_1[5:4],
        ^head_seen_1[5:3],
        ^head_seen_1[5:2],
        ^head_seen_1[5:1],
        ^head_seen_1[5:0]
    };
    wire [5:0] used = tail - head_seen;
    // There is always room for an octet with an error and for the end.
    wire room = used < 6'd30;
    wire breaks = now_dv & ~skips & ~room;
    wire writes = now_dv ? ~skips & (room | open) : open;
    wire [5:0] next_tail = tail + {5'd0, writes};
    always @(posedge rx_clk) begin
        now <= rx_data;
        now_er <= rx_er;
        head_seen_0 <= head_gray;
        head_seen_1 <= head_seen_0;
        if (writes) words[tail[4:0]] <= {now_er | breaks, now_dv, now};
    end
    always @(posedge rx_clk or posedge rx_rst) begin
        if (rx_rst) begin
            // What comes during the reset is no frame.
            now_dv <= 1'b1;
            open <= 1'b0;
            skips <= 1'b1;
            tail <= 6'd0;
            tail_gray <= 6'd0;
        end else begin
            now_dv <= rx_dv;
            open <= now_dv & (open | (~skips & room));
            skips <= now_dv & (skips | ~room);
            tail <= next_tail;
            tail_gray <= next_tail ^ {1'b0, next_tail[5:1]};
        end
    end

    // The side of the device.
    reg [5:0] head, head_gray;
    (* ASYNC_REG = "TRUE" *)
    reg [5:0] tail_seen_0, tail_seen_1;
    reg going;
    reg [2:0] waited;
    wire [5:0] tail_seen = {
        tail_seen_1[5],
        ^tail_seen_1[5:4],
        ^tail_seen_1[5:3],
        ^tail_seen_1[5:2],
        ^tail_seen_1[5:1],
        ^tail_seen_1[5:0]
    };
    wire [5:0] filled = tail_seen - head;
    wire is_empty = filled == 6'd0;
    wire starts = filled >= 6'd6 | waited == 3'd6;
    wire reads = (going | starts) & ~is_empty;
    wire [9:0] word = words[head[4:0]];
    wire [5:0] next_head = head + {5'd0, reads};
    always @(posedge clk) begin
        tail_seen_0 <= tail_gray;
        tail_seen_1 <= tail_seen_0;
        data <= word[7:0];
        if (rst) begin
            head <= 6'd0;
            head_gray <= 6'd0;
            going <= 1'b0;
            waited <= 3'd0;
            dv <= 1'b0;
            er <= 1'b0;
        end else begin
            head <= next_head;
            head_gray <= next_head ^ {1'b0, next_head[5:1]};
            going <= reads & word[8];
            waited <= is_empty | reads ? 3'd0 : waited + 3'd1;
            dv <= reads ? word[8] : going;
            er <= reads ? word[9] & word[8] : going;
        end
    end
endmodule
