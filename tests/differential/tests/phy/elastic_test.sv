// Frames through the elastic buffer, from a clock to another. Ends with a line: frames sent, whole, broken, left out.
`timescale 1ps / 1fs
module elastic_test;
    parameter real RX_HALF = 4000.0;
    parameter real HALF = 4000.0;
    parameter integer FRAMES = 80;
    parameter integer LONGEST = 2000;
    parameter integer GAP = 12;

    reg rx_clk = 0, clk = 0, rst = 1;
    always #RX_HALF rx_clk = ~rx_clk;
    always #HALF clk = ~clk;
    wire rx_rst, dev_rst;
    reset_synchroniser rx_reset (.clk(rx_clk), .async_rst(rst), .rst(rx_rst));
    reset_synchroniser reset (.clk(clk), .async_rst(rst), .rst(dev_rst));
    reg [7:0] rx_data = 0;
    reg rx_dv = 0, rx_er = 0;
    wire [7:0] data;
    wire dv, er;
    gmii_elastic buffer (
        .rx_clk(rx_clk), .rx_rst(rx_rst), .rx_data(rx_data), .rx_dv(rx_dv), .rx_er(rx_er),
        .clk(clk), .rst(dev_rst), .data(data), .dv(dv), .er(er)
    );

    // Frame n has a length that follows from n; its first three octets are n, each other follows from its place and n. Of each seventh
    // one octet has an error.
    function integer length(input integer n);
        length = n % 11 == 0 ? LONGEST : n % 5 == 0 ? 1 + n % 9 : 60 + (n * 7919) % (LONGEST - 59);
    endfunction
    function [7:0] octet(input integer n, input integer at);
        octet = at == 0 ? n[7:0] : at == 1 ? n[15:8] : at == 2 ? 8'h5a : (at * 31 + n * 17) & 255;
    endfunction
    function bad(input integer n, input integer at);
        bad = n % 7 == 3 && at == length(n) / 2;
    endfunction

    integer n, at, idle;
    initial begin
        // The reset ends within a frame, which is none then.
        rx_dv <= 1;
        #100000 rst = 0;
        repeat (20) @(posedge rx_clk);
        rx_dv <= 0;
        repeat (40) @(posedge rx_clk);
        for (n = 0; n < FRAMES; n = n + 1) begin
            for (at = 0; at < length(n); at = at + 1) begin
                @(posedge rx_clk);
                rx_data <= octet(n, at);
                rx_dv <= 1;
                rx_er <= bad(n, at);
            end
            for (idle = 0; idle < GAP; idle = idle + 1) begin
                @(posedge rx_clk);
                // False carrier.
                rx_data <= 8'h0e;
                rx_dv <= 0;
                rx_er <= idle == 3;
            end
        end
        repeat (200) @(posedge rx_clk);
        $display("sent %0d whole %0d broken %0d missing %0d", FRAMES, whole, broken, FRAMES - whole - broken);
        $finish;
    end

    integer expected = 0, seen = 0, whole = 0, broken = 0, marked = 0;
    reg in_frame = 0, wrong = 0, has_er = 0;
    integer own = 0;
    reg [7:0] first [0:2];
    always @(posedge clk) if (!dev_rst) begin
        if (dv) begin
            if (!in_frame) begin
                seen = 0;
                has_er = 0;
                wrong = 0;
            end
            in_frame = 1;
            if (seen < 3) first[seen] = data;
            // Which frame it is: the next one, or a later one where some are left out.
            if (seen == 0) begin
                own = expected;
                while (own < FRAMES && own[7:0] != data) own = own + 1;
            end
            if (er) has_er = 1;
            if (er !== bad(own, seen) || (!er && data !== octet(own, seen))) wrong = 1;
            seen = seen + 1;
        end else if (in_frame) begin
            in_frame = 0;
            if (own >= FRAMES) begin
                if (!has_er && !marked) begin
                    $display("a frame that was not sent");
                    $finish;
                end
                broken = broken + 1;
            end else if (!wrong && seen == length(own)) begin
                whole = whole + 1;
                expected = own + 1;
            end else begin
                // The rest of a frame that ended early is a run of its own, without a preamble.
                if (!has_er && !marked) begin
                    $display("frame %0d of %0d octets ended after %0d without an error", own, length(own), seen);
                    $finish;
                end
                broken = broken + 1;
                if (!marked) expected = own;
            end
            marked = has_er && !(!wrong && seen == length(own));
        end else if (er) begin
            $display("an error between frames");
            $finish;
        end
    end
endmodule
