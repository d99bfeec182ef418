// Package phy asks what the firmware or the PHY of a network interface says of its link,
// which is the layer between the light and the kernel's carrier. There is no one way to
// ask; [Probe] says which of these can be had for an interface.
//
//   - [FindIB]: the port state of the interface's RDMA device, in sysfs, source "ib-phys".
//     Polled, as exact as the polling. Emulations publish the same tree elsewhere.
//   - [OpenKmsg]: what drivers write into the kernel log when firmware tells them of a link,
//     source "kmsg". Good to some tens of microseconds where the clock of the log can be
//     calibrated.
//   - [OpenEthtool]: why a link is down, in words, from ethtool's link state.
//   - [ParseMST]: what NVIDIA's tools print of a ConnectX, among it how long each part of
//     the last link-up took by the firmware's own timers. It is read from saved text;
//     no tool is run.
//
// # What is firmware and what is not
//
// Of InfiniBand ports the state is the firmware's. Of RoCE ports mlx5 answers from the
// kernel: state and phys_state are netif_carrier_ok of the interface at that moment
// (drivers/infiniband/hw/mlx5/main.c, mlx5_query_port_roce). That is free of linkwatch's
// delay of up to a second, but it is the carrier and an upper bound of the firmware's
// report. [IBPort.LinkLayer] tells them apart. The line in the kernel log comes before
// netif_carrier_on and after the driver has asked the firmware.
package phy
