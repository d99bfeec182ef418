// Package cmis knows the memory of pluggable optical modules: where identity, optical
// power and loss-of-signal flags are in it, and how they are written. It does no I/O.
//
// Two memory maps are known. SFF-8636 (revision 2.10a) is that of QSFP+ and QSFP28;
// the Common Management Interface Specification (OIF-CMIS-05.2) is that of QSFP-DD, OSFP
// and newer QSFP modules. Both have 256 addressable bytes: 0 to 127 are the lower memory,
// which is always there, 128 to 255 a window onto one of many upper pages.
//
//	                     SFF-8636                     CMIS
//	identifier           00h:0                        00h:0
//	module state         00h:2 bit 0 (not ready)      00h:3 bits 3-1
//	vendor, part, serial 00h:148, 168, 196            00h:129, 148, 166
//	lanes there          00h:113 bits 3-0             00h:210
//	DataPath state                                    11h:128-131, 4 bits per lane
//	Tx LOS, Rx LOS       00h:3 bits 7-4, 3-0          11h:136, 147
//	Tx LOL, Rx LOL       00h:5 bits 7-4, 3-0          11h:137, 148
//	Tx power             00h:50-57                    11h:154-169
//	Tx bias              00h:42-49                    11h:170-185
//	Rx power             00h:34-41                    11h:186-201
//
// Powers are big-endian counts of 0.1 µW; that is [Power]. Flags are latched: a set flag
// means that the thing happened since the flag was last read, and reading clears it,
// unless it still is so. So whoever reads flags takes them from everybody else.
//
// [Identify] finds out what a module is; its [Identity] then tells which one read gives
// the optical power, and takes the bytes apart. [Decode] does all at once, [Encode] is its
// inverse and makes an [Image], the file form of a module's memory.
//
// Of lanes only bank 0, lanes 1 to 8, is known. SFF-8472 (SFP) is not known.
//
// # More of CMIS
//
// For modules that do more than carry light, the registers are typed one by one:
//
//	[ModuleStatus]  00h:3 to 25   state, flags, temperature, supply
//	[GlobalControl] 00h:26        low power, reset
//	[Product]       page 00h      vendor, codes, power class
//	[Advertising]   page 01h      what the module can do
//	[LaneControl]   10h:128-139   what the host wants of the lanes
//	[DoCDB]         page 9Fh      commands and replies, with their check codes
//
// A [Memory] is a module that can be written, too. A [Store] is the memory of an emulated
// one: it knows from [Registers] what the host may write and which flags reading clears.
//
// All functions may be called concurrently; an Image is bytes and no safer than those, and
// nor is a Store.
package cmis
