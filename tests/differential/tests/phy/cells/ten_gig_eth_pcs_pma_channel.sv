module ten_gig_eth_pcs_pma_channel (
    input wire txusrclk,
    input wire txusrclk2,
    input wire gttxreset,
    input wire gtrxreset,
    input wire txuserrdy,
    input wire qplllock,
    input wire qplloutclk,
    input wire qplloutrefclk,
    input wire reset_counter_done,
    input wire coreclk,
    input wire areset,
    input wire areset_coreclk,
    output wire rxrecclk_out,
    output wire txoutclk,
    output wire tx_resetdone,
    output wire rx_resetdone,
    input wire dclk,
    input wire sim_speedup_control,
    input wire [63:0] xgmii_txd,
    input wire [7:0] xgmii_txc,
    output wire [63:0] xgmii_rxd,
    output wire [7:0] xgmii_rxc,
    output wire txp,
    output wire txn,
    input wire rxp,
    input wire rxn,
    input wire [535:0] configuration_vector,
    output wire [447:0] status_vector,
    output wire [7:0] core_status,
    input wire signal_detect,
    input wire tx_fault,
    output wire drp_req,
    input wire drp_gnt,
    output wire drp_den_o,
    output wire drp_dwe_o,
    output wire [15:0] drp_daddr_o,
    output wire [15:0] drp_di_o,
    output wire drp_drdy_o,
    output wire [15:0] drp_drpdo_o,
    input wire drp_den_i,
    input wire drp_dwe_i,
    input wire [15:0] drp_daddr_i,
    input wire [15:0] drp_di_i,
    input wire drp_drdy_i,
    input wire [15:0] drp_drpdo_i,
    input wire [2:0] pma_pmd_type,
    output wire tx_disable
);
    // Nothing of the core: ports that are used, and no way through it without a register.
    reg all;
    always @(posedge dclk) all <= ^{txusrclk, txusrclk2, gttxreset, gtrxreset, txuserrdy, qplllock, qplloutclk, qplloutrefclk, reset_counter_done,
        coreclk, areset, areset_coreclk, sim_speedup_control, xgmii_txd, xgmii_txc, rxp, rxn, configuration_vector, signal_detect, tx_fault, drp_gnt,
        drp_den_i, drp_dwe_i, drp_daddr_i, drp_di_i, drp_drdy_i, drp_drpdo_i, pma_pmd_type};
    assign rxrecclk_out = all;
    assign txoutclk = all;
    assign tx_resetdone = all;
    assign rx_resetdone = all;
    assign xgmii_rxd = {64{all}};
    assign xgmii_rxc = {8{all}};
    assign txp = all;
    assign txn = all;
    assign status_vector = {448{all}};
    assign core_status = {8{all}};
    assign drp_req = all;
    assign drp_den_o = all;
    assign drp_dwe_o = all;
    assign drp_daddr_o = {16{all}};
    assign drp_di_o = {16{all}};
    assign drp_drdy_o = all;
    assign drp_drpdo_o = {16{all}};
    assign tx_disable = all;
endmodule
