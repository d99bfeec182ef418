package cmis

import "slices"

// Access says who may do what to a register.
type Access uint8

const (
	ReadOnly  Access = iota // the module writes it
	ReadWrite               // the host may write it
	WriteOnly               // the host may write it, and reads 0
	ReadClear               // flags that reading clears (clear on read, COR)
)

// String is the access as the specification abbreviates it: "RO", "RW", "WO" or "RO/COR".
func (a Access) String() string {
	switch a {
	case ReadOnly:
		return "RO"
	case ReadWrite:
		return "RW"
	case WriteOnly:
		return "WO"
	case ReadClear:
		return "RO/COR"
	}
	return "unknown access"
}

// Register is a named run of bytes in the memory of a module. It lies within the lower
// memory or within one upper page. Bank in its address is 0.
type Register struct {
	Address
	Length int
	Access Access
	Name   string
	Banks  int // how many banks have it, from bank 0 on; 0 and 1: bank 0 only
}

// Registers returns the registers of a CMIS module that this package knows: the lower
// memory and pages 00h, 01h, 10h, 11h and 9Fh, in order. The list is the caller's own.
//
// It is what a module of up to eight lanes with one CDB instance needs, and not all of the
// specification: bytes of which nothing here makes use are left out.
func Registers() []Register { return slices.Clone(registers) }

var registers = slices.Concat(
	page(0x00,
		field{RegIdentifier, 1, ReadOnly, "SFF8024Identifier"},
		field{RegRevision, 1, ReadOnly, "CmisRevision"},
		field{RegMemoryModel, 1, ReadOnly, "MemoryModel"},
		field{RegModuleState, 1, ReadOnly, "ModuleState"},
		field{RegFlagsSummary, 4, ReadOnly, "FlagsSummary"},
		field{RegModuleFlags, 6, ReadClear, "ModuleFlags"},
		field{RegTemperature, 2, ReadOnly, "TempMonValue"},
		field{RegVcc, 2, ReadOnly, "VccMonVoltage"},
		field{RegAux, 6, ReadOnly, "AuxMonValues"},
		field{RegCustomMonitor, 2, ReadOnly, "CustomMonValue"},
		field{RegGlobalControl, 1, ReadWrite, "ModuleGlobalControls"},
		field{RegModuleMasks, 6, ReadWrite, "ModuleLevelMasks"},
		field{RegCDBStatus, 2, ReadOnly, "CdbStatus"},
		field{RegFirmware, 2, ReadOnly, "ModuleActiveFirmwareVersion"},
		field{RegFaultCause, 1, ReadOnly, "ModuleFaultCause"},
		field{85, 1, ReadOnly, "MediaType"},
		field{86, 32, ReadOnly, "ApplicationDescriptors"},
		field{118, 4, WriteOnly, "PasswordChangeEntryArea"},
		field{RegPassword, 4, WriteOnly, "PasswordEntryArea"},
		field{126, 1, ReadWrite, "BankSelect"},
		field{127, 1, ReadWrite, "PageSelect"},

		field{128, 1, ReadOnly, "SFF8024IdentifierCopy"},
		field{129, 16, ReadOnly, "VendorName"},
		field{RegOUI, 3, ReadOnly, "VendorOUI"},
		field{148, 16, ReadOnly, "VendorPN"},
		field{RegVendorRev, 2, ReadOnly, "VendorRev"},
		field{166, 16, ReadOnly, "VendorSN"},
		field{RegDateCode, 8, ReadOnly, "DateCode"},
		field{RegCLEI, 10, ReadOnly, "CLEICode"},
		field{RegPowerClass, 1, ReadOnly, "ModulePowerClass"},
		field{RegMaxPower, 1, ReadOnly, "MaxPower"},
		field{202, 1, ReadOnly, "CableAssemblyLinkLength"},
		field{RegConnector, 1, ReadOnly, "ConnectorType"},
		field{204, 6, ReadOnly, "CopperCableAttenuation"},
		field{RegMediaLanes, 1, ReadOnly, "MediaLaneInformation"},
		field{211, 1, ReadOnly, "FarEndConfiguration"},
		field{RegTechnology, 1, ReadOnly, "MediaInterfaceTechnology"},
		field{RegChecksum, 1, ReadOnly, "PageChecksum"},
		field{223, 33, ReadOnly, "Custom"},
	),
	page(0x01,
		field{128, 2, ReadOnly, "ModuleInactiveFirmwareVersion"},
		field{RegHardware, 2, ReadOnly, "ModuleHardwareVersion"},
		field{132, 6, ReadOnly, "SupportedFiberLinkLength"},
		field{RegWavelength, 4, ReadOnly, "Wavelength"},
		field{RegPages, 1, ReadOnly, "SupportedPages"},
		field{143, 2, ReadOnly, "Durations"},
		field{145, 10, ReadOnly, "ModuleCharacteristics"},
		field{RegControls, 2, ReadOnly, "SupportedControls"},
		field{157, 2, ReadOnly, "SupportedFlags"},
		field{RegMonitors, 2, ReadOnly, "SupportedMonitors"},
		field{161, 2, ReadOnly, "SupportedSignalIntegrityControls"},
		field{RegCDB, 4, ReadOnly, "CdbAdvertisement"},
		field{167, 3, ReadOnly, "AdditionalDurations"},
		field{RegAdvertisedSum, 1, ReadOnly, "PageChecksum"},
	),
	page(ControlPage,
		field{RegDPDeinit, 1, ReadWrite, "DPDeinitLane"},
		field{RegTxFlip, 1, ReadWrite, "InputPolarityFlipTx"},
		field{RegTxDisable, 1, ReadWrite, "OutputDisableTx"},
		field{RegTxSquelchOff, 1, ReadWrite, "AutoSquelchDisableTx"},
		field{RegTxSquelch, 1, ReadWrite, "OutputSquelchForceTx"},
		field{RegRxFlip, 1, ReadWrite, "OutputPolarityFlipRx"},
		field{RegRxDisable, 1, ReadWrite, "OutputDisableRx"},
		field{RegRxSquelchOff, 1, ReadWrite, "AutoSquelchDisableRx"},
		field{RegApplyDPInit, 1, WriteOnly, "SCS0ApplyDPInit"},
		field{RegApplyImmediate, 1, WriteOnly, "SCS0ApplyImmediate"},
		field{RegDPConfig, 8, ReadWrite, "SCS0DPConfigLane"},
		field{RegLaneMasks, 20, ReadWrite, "LaneMasks"},
	),
	page(0x11,
		field{128, 4, ReadOnly, "DPStateHostLane"},
		field{132, 1, ReadOnly, "OutputStatusRx"},
		field{133, 1, ReadOnly, "OutputStatusTx"},
		field{134, 20, ReadClear, "LaneFlags"},
		field{154, 16, ReadOnly, "OpticalPowerTx"},
		field{170, 16, ReadOnly, "LaserBiasTx"},
		field{186, 16, ReadOnly, "OpticalPowerRx"},
		field{202, 4, ReadOnly, "ConfigStatusLane"},
		field{206, 8, ReadOnly, "ActiveDPConfigLane"},
	),
	page(CDBPage,
		field{128, 2, ReadWrite, "CMDID"},
		field{130, 2, ReadWrite, "EPLLength"},
		field{132, 1, ReadWrite, "LPLLength"},
		field{133, 1, ReadWrite, "CdbChkCode"},
		field{134, 1, ReadOnly, "RPLLength"},
		field{135, 1, ReadOnly, "RPLChkCode"},
		field{136, CDBMaxPayload, ReadWrite, "LPL"},
	),
)

// field is a register of a page.
type field struct {
	offset uint8
	length int
	access Access
	name   string
}

func page(page uint8, fields ...field) []Register {
	list := make([]Register, len(fields))
	for i, f := range fields {
		list[i] = Register{Address: Address{Page: page, Offset: f.offset}, Length: f.length, Access: f.access, Name: f.name}
	}
	return list
}
