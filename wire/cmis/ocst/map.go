package ocst

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
)

// Vendor pages.
const (
	PageControl  = 0xb0
	PageMonitors = 0xb1
	PageElements = 0xb2
	PageLog      = 0xb3
	PageHeaters  = 0xb4
	PageCurrents = 0xb5
	PageTrim     = 0xb6
	PageTable    = 0xb7
	PageScope    = 0xb8
)

// Registers of [PageControl].
const (
	RegMagic      = 128
	RegVersion    = 132
	RegCaps       = 133
	RegState      = 134
	RegPath       = 135
	RegStaged     = 136
	RegMask       = 137
	RegCommit     = 138
	RegResult     = 139
	RegSequence   = 140
	RegDuration   = 144
	RegTimeout    = 148
	RegSwitches   = 150
	RegFlags      = 154
	RegFlagMask   = 155
	RegLanes      = 156
	RegLoop       = 164
	RegFault      = 172
	RegFaultAt    = 173
	RegControl    = 174
	RegStateAgain = 175
	RegOut1       = 176
)

// Registers of [PageMonitors].
const (
	RegOut2     = 128
	RegLoopTap  = 144
	RegRx1      = 160
	RegRx2      = 176
	RegRxLoop   = 192
	RegLaunched = 208
)

// Registers of [PageHeaters], bank 0.
const (
	RegCodes       = 128
	RegLit         = 200
	RegLaser       = 201
	RegHeaterPower = 202
)

// Magic is what [RegMagic] holds, MapVersion what [RegVersion] does.
const (
	Magic      = "OCST"
	MapVersion = 1
)

// The heaters' converter: 12 bits, 0 to 3.3 V.
const (
	DACMax  = 4095
	DACFull = 3.3 // V
)

// Capabilities are what a module can do, [RegCaps].
type Capabilities uint8

const (
	CanLanes   Capabilities = 1 << iota // select the path lane by lane
	CanPermute                          // loop permutations other than the default
	CanArm                              // be armed, and switch at a trigger
	CanTrim                             // trim phases while it carries light
	LoopOnly                            // has no fibres
	CanHeaters                          // give access to its heaters, for calibration
	CanCapture                          // keep the transient of a switch
)

// State is what a module does, [RegState].
type State uint8

const (
	StateReset State = iota
	StateLowPower
	StateWarmUp // heaters go to where the table says
	StateCal    // waits for a table, or is being calibrated; dark unless a lane is lit for it
	StateReady
	StateArmed // as Ready, and will switch at the trigger
	StateBreak // light is away, heaters move
	StateSettle
	StateLocking // light is there; receivers of the host recover the clock
	StateFault   // dark until it is reset
)

// String is the state in small letters.
func (s State) String() string {
	return name(uint8(s), "reset", "low-power", "warm-up", "cal", "ready", "armed", "break", "settle", "locking", "fault")
}

// Busy reports whether a switch is under way: commands are refused.
func (s State) Busy() bool { return s == StateBreak || s == StateSettle }

// Path is where the light of a lane goes, and where its receiver listens.
type Path uint8

const (
	Dark Path = iota
	Path1
	Path2
	LoopPath
	Mixed // not all lanes the same; of a module only
)

// String is "dark", "path1", "path2", "loop" or "mixed".
func (p Path) String() string { return name(uint8(p), "dark", "path1", "path2", "loop", "mixed") }

// Lock is what the receiver of a lane does.
type Lock uint8

const (
	NoLight   Lock = iota // or the lane is dark
	Acquiring             // clock recovery is at work
	Locked
)

// String is "no-light", "acquiring" or "locked".
func (l Lock) String() string { return name(uint8(l), "no-light", "acquiring", "locked") }

// Commit is what to do with what was staged, [RegCommit].
type Commit uint8

const (
	// CommitNow switches the lanes of [RegMask] to the path of [RegStaged], and the loop to
	// what is staged there.
	CommitNow Commit = iota + 1
	// CommitArm keeps that for the trigger. Arming again with other lanes adds to it.
	CommitArm
	// CommitTrigger does what was armed. The trigger line does the same.
	CommitTrigger
	// CommitDisarm forgets what was armed.
	CommitDisarm
)

// Fault is how a command or a switch ended, and why a module is in State Fault.
type Fault uint8

const (
	NoFault         Fault = iota
	FaultOpen             // a heater draws no current
	FaultShort            // a heater draws too much
	FaultTimeout          // the taps did not settle in time
	FaultTwoPaths         // light on two outputs of a lane
	FaultHot              // case at 75 °C or above
	FaultTable            // the calibration table is missing, damaged, or of another module
	FaultLaser            // no light, or too little
	FaultBusy             // a command while a switch was under way; it was not done
	FaultHalfOpen         // armed, and no trigger came; nothing was switched
	FaultPower            // would take the module beyond 12 W; it was not done
	FaultNotArmed         // a trigger with nothing armed
	FaultStage            // what was staged makes no sense; nothing was switched
	FaultBrownOut         // the supply broke down during a switch
	FaultNotAllowed       // not in this state; nothing was done
)

// String says in a few words what is wrong; "ok" for NoFault.
func (f Fault) String() string {
	return name(uint8(f), "ok", "heater open", "heater short", "settle timeout", "light on two outputs", "over-temperature",
		"calibration table missing or damaged", "laser low", "busy", "half-armed: no trigger came", "beyond its power",
		"nothing armed", "staged settings make no sense", "brown-out", "not possible in this state")
}

// Flags are latched until they are read, [RegFlags].
type Flags uint8

const (
	FlagDone Flags = 1 << iota
	FlagTimeout
	FlagTwoPaths
	FlagHeater
	FlagTemperature // 70 °C or above
	FlagTable
	FlagHalfOpen
	FlagRejected // a command was not done, see RegResult
)

// String lists the flags that are set, or "none".
func (f Flags) String() string {
	names := []string{"done", "timeout", "two-paths", "heater", "temperature", "table", "half-open", "rejected"}
	var set []string
	for i, n := range names {
		if f>>i&1 != 0 {
			set = append(set, n)
		}
	}
	if set == nil {
		return "none"
	}
	return strings.Join(set, ",")
}

// Control bits, [RegControl].
const (
	// PreEmphasis overdrives heaters at the begin of a switch.
	PreEmphasis = 1 << iota
)

// CDB commands, and their payloads (LPL).
const (
	// CDBSwitch: path, mask, Commit. Reply: Fault, sequence number (4 bytes).
	CDBSwitch = 0x8001
	// CDBCalibrate*: 1 enters State Cal, with all heaters off, the laser on and every lane
	// dark; 0 leaves it by way of WarmUp. A session without a read or write of pages B4h to
	// B7h for [CalTimeout] is left by the module. While a session is open 1 is refused, with
	// FaultBusy, so that two hosts do not work on one module. Reply: nothing, or Fault.
	CDBCalibrate = 0x8002
	// CDBReadTable: bank, offset from 0, length up to 120. Reply: the bytes of page B7h.
	CDBReadTable = 0x8003
	// CDBVerification: none. Reply: the verification in the table, [Verification.Encode].
	CDBVerification = 0x8004
	// CDBHeaterTest*: none; not while light is on. Reply: two times 9 bytes, one bit for
	// each heater (arm A of element 0, arm B of element 0, ...): those open, those short.
	CDBHeaterTest = 0x8005
	// CDBPermute: where the loop takes each lane (8 bytes). Switches lanes that are on it.
	CDBPermute = 0x8006
	// CDBLoadTable*: number of pages (1 byte). Checks what was written to page B7h, keeps it
	// over restarts and uses it. Reply: Fault.
	CDBLoadTable = 0x8007
)

// CalTimeout is how long a module waits for the host in a calibration session.
const CalTimeout = 10 * time.Second

// ArmTimeout is how long a module waits, armed, for the trigger.
const ArmTimeout = time.Second

// HostPassword is the one that modules come with (OIF-CMIS-05.2, section 8.2.12).
const HostPassword uint32 = 0x00001011

// StatusSpan is the read that [DecodeStatus] wants; LanesSpan that of [DecodeLanes]. Neither
// clears a flag.
var (
	StatusSpan = cmis.Span{Address: At(RegState), Length: RegFlags - RegState}
	LanesSpan  = cmis.Span{Address: At(RegLanes), Length: RegOut1 - RegLanes}
)

// At is the address of a register of [PageControl].
func At(reg uint8) cmis.Address { return cmis.Address{Page: PageControl, Offset: reg} }

// Status is what a module says of itself and its last switch.
type Status struct {
	State         State
	Path          Path
	Staged        Path
	Mask          uint8
	Result        Fault
	Sequence      uint32
	Duration      time.Duration // of the last switch, in steps of 10 ns
	SettleTimeout time.Duration // in steps of 1 µs
	Switches      uint32
}

// DurationUnit is the resolution of durations of switches.
const DurationUnit = 10 * time.Nanosecond

// DecodeStatus takes apart what StatusSpan gave.
func DecodeStatus(p []byte) (Status, error) {
	if len(p) != StatusSpan.Length {
		return Status{}, fmt.Errorf("status of a module: %d bytes where %d belong", len(p), StatusSpan.Length)
	}
	at := func(reg int) []byte { return p[reg-RegState:] }
	return Status{
		State: State(p[0]), Path: Path(at(RegPath)[0]), Staged: Path(at(RegStaged)[0]), Mask: at(RegMask)[0],
		Result: Fault(at(RegResult)[0]), Sequence: binary.BigEndian.Uint32(at(RegSequence)),
		Duration:      time.Duration(binary.BigEndian.Uint32(at(RegDuration))) * DurationUnit,
		SettleTimeout: time.Duration(binary.BigEndian.Uint16(at(RegTimeout))) * time.Microsecond,
		Switches:      binary.BigEndian.Uint32(at(RegSwitches)),
	}, nil
}

// Encode is the inverse of [DecodeStatus]; what does not fit is cut off at the largest.
func (s Status) Encode() []byte {
	p := make([]byte, StatusSpan.Length)
	at := func(reg int) []byte { return p[reg-RegState:] }
	p[0], at(RegPath)[0], at(RegStaged)[0], at(RegMask)[0] = byte(s.State), byte(s.Path), byte(s.Staged), s.Mask
	at(RegResult)[0] = byte(s.Result)
	binary.BigEndian.PutUint32(at(RegSequence), s.Sequence)
	binary.BigEndian.PutUint32(at(RegDuration), uint32(min(max(s.Duration/DurationUnit, 0), 1<<32-1)))
	binary.BigEndian.PutUint16(at(RegTimeout), uint16(min(max(s.SettleTimeout/time.Microsecond, 0), 1<<16-1)))
	binary.BigEndian.PutUint32(at(RegSwitches), s.Switches)
	return p
}

// LaneStatus is what a module says of its lanes.
type LaneStatus struct {
	Path    [Lanes]Path
	Lock    [Lanes]Lock
	Loop    Permutation // where it takes the lanes
	Next    Permutation // where the next switch is to take them
	Fault   Fault
	FaultAt uint8 // element or lane; FFh none
	Control uint8
	State   State
}

// DecodeLanes takes apart what LanesSpan gave.
func DecodeLanes(p []byte) (LaneStatus, error) {
	var s LaneStatus
	if len(p) != LanesSpan.Length {
		return s, fmt.Errorf("lanes of a module: %d bytes where %d belong", len(p), LanesSpan.Length)
	}
	for lane := range Lanes {
		s.Path[lane], s.Lock[lane] = Path(p[lane]&3), Lock(p[lane]>>4&3)
		s.Loop[lane], s.Next[lane] = p[Lanes+lane]>>4, p[Lanes+lane]&0xf
	}
	s.Fault, s.FaultAt, s.Control, s.State = Fault(p[16]), p[17], p[18], State(p[19])
	return s, nil
}

// Encode is the inverse of [DecodeLanes].
func (s LaneStatus) Encode() []byte {
	p := make([]byte, LanesSpan.Length)
	for lane := range Lanes {
		p[lane] = byte(s.Path[lane]&3) | byte(s.Lock[lane]&3)<<4
		p[Lanes+lane] = s.Loop[lane]<<4 | s.Next[lane]&0xf
	}
	p[16], p[17], p[18], p[19] = byte(s.Fault), s.FaultAt, s.Control, byte(s.State)
	return p
}

// LogEntry is one switch in the log of a module: 16 bytes of page B3h.
type LogEntry struct {
	At       uint32 // µs since the module started, modulo 2^32; of commit or trigger
	Sequence uint32 // after the switch
	From, To Path   // of the lanes in Mask
	Mask     uint8
	Result   Fault
	Duration time.Duration
}

// LogSize is how many switches a module remembers, logEntry their size on the page.
const (
	LogSize  = 16
	logEntry = 16
)

// DecodeLog takes apart banks 0 and 1 of page B3h, 128 bytes each. The newest is first;
// empty entries, all bytes 0, are left out.
func DecodeLog(banks [2][]byte) ([]LogEntry, error) {
	var list []LogEntry
	for _, p := range banks {
		if len(p) != 128 {
			return nil, fmt.Errorf("log of a module: %d bytes where 128 belong", len(p))
		}
		for ; len(p) > 0; p = p[logEntry:] {
			e := LogEntry{
				At: binary.BigEndian.Uint32(p), Sequence: binary.BigEndian.Uint32(p[4:]),
				From: Path(p[8]), To: Path(p[9]), Mask: p[10], Result: Fault(p[11]),
				Duration: time.Duration(binary.BigEndian.Uint32(p[12:])) * DurationUnit,
			}
			if e != (LogEntry{}) {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// EncodeLog is the inverse of [DecodeLog]; entries after the sixteenth are left out.
func EncodeLog(list []LogEntry) (banks [2][]byte) {
	for i := range banks {
		banks[i] = make([]byte, 128)
	}
	for i, e := range list[:min(len(list), LogSize)] {
		p := banks[i/8][i%8*logEntry:]
		binary.BigEndian.PutUint32(p, e.At)
		binary.BigEndian.PutUint32(p[4:], e.Sequence)
		p[8], p[9], p[10], p[11] = byte(e.From), byte(e.To), e.Mask, byte(e.Result)
		binary.BigEndian.PutUint32(p[12:], uint32(min(max(e.Duration/DurationUnit, 0), 1<<32-1)))
	}
	return banks
}

func name(n uint8, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("reserved %d", n)
}
