package ocst

import "github.com/ocslab/ocslab/wire/cmis"

// TableBanks is how many banks page B7h has, and so of how many pages a table is at most.
const TableBanks = 64

// Registers returns the registers of pages B0h to B8h, in order. The list is the caller's
// own.
//
// Access is by byte. Of the loop registers, B0h:164 to 171, only bits 3-0 can be written:
// it is the module that keeps the others.
func Registers() []cmis.Register {
	return []cmis.Register{
		{Address: At(RegMagic), Length: 4, Name: "Magic"},
		{Address: At(RegVersion), Length: 1, Name: "MapVersion"},
		{Address: At(RegCaps), Length: 1, Name: "Capabilities"},
		{Address: At(RegState), Length: 1, Name: "State"},
		{Address: At(RegPath), Length: 1, Name: "Path"},
		{Address: At(RegStaged), Length: 1, Access: cmis.ReadWrite, Name: "StagedPath"},
		{Address: At(RegMask), Length: 1, Access: cmis.ReadWrite, Name: "LaneMask"},
		{Address: At(RegCommit), Length: 1, Access: cmis.WriteOnly, Name: "Commit"},
		{Address: At(RegResult), Length: 1, Name: "LastResult"},
		{Address: At(RegSequence), Length: 4, Name: "SequenceNumber"},
		{Address: At(RegDuration), Length: 4, Name: "LastDuration"},
		{Address: At(RegTimeout), Length: 2, Access: cmis.ReadWrite, Name: "SettleTimeout"},
		{Address: At(RegSwitches), Length: 4, Name: "SwitchCounter"},
		{Address: At(RegFlags), Length: 1, Access: cmis.ReadClear, Name: "Flags"},
		{Address: At(RegFlagMask), Length: 1, Access: cmis.ReadWrite, Name: "FlagMask"},
		{Address: At(RegLanes), Length: Lanes, Name: "LanePaths"},
		{Address: At(RegLoop), Length: Lanes, Access: cmis.ReadWrite, Name: "LoopPermutation"},
		{Address: At(RegFault), Length: 1, Name: "Fault"},
		{Address: At(RegFaultAt), Length: 1, Name: "FaultAt"},
		{Address: At(RegControl), Length: 1, Access: cmis.ReadWrite, Name: "Control"},
		{Address: At(RegStateAgain), Length: 1, Name: "StateAgain"},
		{Address: At(RegOut1), Length: 2 * Lanes, Name: "PowerOut1"},

		{Address: on(PageMonitors, RegOut2), Length: 2 * Lanes, Name: "PowerOut2"},
		{Address: on(PageMonitors, RegLoopTap), Length: 2 * Lanes, Name: "PowerLoopTap"},
		{Address: on(PageMonitors, RegRx1), Length: 2 * Lanes, Name: "PowerRx1"},
		{Address: on(PageMonitors, RegRx2), Length: 2 * Lanes, Name: "PowerRx2"},
		{Address: on(PageMonitors, RegRxLoop), Length: 2 * Lanes, Name: "PowerRxLoop"},
		{Address: on(PageMonitors, RegLaunched), Length: 2 * Lanes, Name: "PowerLaunched"},

		{Address: on(PageElements, 128), Length: settingSize * settingsPerBank, Banks: SettingBanks, Name: "ElementSettings"},
		{Address: on(PageElements, 128+PageData), Length: 2, Banks: SettingBanks, Name: "ElementSettingsCRC"},

		{Address: on(PageLog, 128), Length: 128, Banks: 2, Name: "SwitchLog"},

		{Address: on(PageHeaters, RegCodes), Length: 2 * Elements, Access: cmis.ReadWrite, Banks: 2, Name: "HeaterCodes"},
		{Address: on(PageHeaters, RegLit), Length: 1, Access: cmis.ReadWrite, Name: "LanesLit"},
		{Address: on(PageHeaters, RegLaser), Length: 1, Access: cmis.ReadWrite, Name: "LaserOn"},
		{Address: on(PageHeaters, RegHeaterPower), Length: 2, Name: "HeaterPower"},

		{Address: on(PageCurrents, 128), Length: 2 * Elements, Banks: 2, Name: "HeaterCurrents"},

		{Address: on(PageTrim, 128), Length: 2 * Elements, Access: cmis.ReadWrite, Name: "Trim"},

		{Address: on(PageTable, 128), Length: 128, Access: cmis.ReadWrite, Banks: TableBanks, Name: "CalibrationTable"},

		{Address: on(PageScope, 128), Length: 1, Access: cmis.ReadWrite, Banks: 3, Name: "CaptureLane"},
		{Address: on(PageScope, 129), Length: 1, Banks: 3, Name: "CaptureSampleTime"},
		{Address: on(PageScope, 130), Length: 1, Banks: 3, Name: "CaptureSamples"},
		{Address: on(PageScope, 128+captureData), Length: CaptureSamples, Banks: 3, Name: "Capture"},
	}
}

// on is the address of a register of a vendor page.
func on(page, offset uint8) cmis.Address { return cmis.Address{Page: page, Offset: offset} }
