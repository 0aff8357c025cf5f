module ten_gig_eth_pcs_pma_shared (
    input wire refclk_p,
    input wire refclk_n,
    input wire reset,
    output wire txusrclk_out,
    output wire txusrclk2_out,
    output wire gttxreset_out,
    output wire gtrxreset_out,
    output wire txuserrdy_out,
    output wire qplllock_out,
    output wire qplloutclk_out,
    output wire qplloutrefclk_out,
    output wire reset_counter_done_out,
    output wire coreclk_out,
    output wire areset_datapathclk_out,
    output wire rxrecclk_out,
    output wire resetdone_out,
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
    always @(posedge dclk) all <= ^{refclk_p, refclk_n, reset, sim_speedup_control, xgmii_txd, xgmii_txc, rxp, rxn, configuration_vector,
        signal_detect, tx_fault, drp_gnt, drp_den_i, drp_dwe_i, drp_daddr_i, drp_di_i, drp_drdy_i, drp_drpdo_i, pma_pmd_type};
    assign txusrclk_out = all;
    assign txusrclk2_out = all;
    assign gttxreset_out = all;
    assign gtrxreset_out = all;
    assign txuserrdy_out = all;
    assign qplllock_out = all;
    assign qplloutclk_out = all;
    assign qplloutrefclk_out = all;
    assign reset_counter_done_out = all;
    assign coreclk_out = all;
    assign areset_datapathclk_out = all;
    assign rxrecclk_out = all;
    assign resetdone_out = all;
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
