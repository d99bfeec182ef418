package ocstrx

import (
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Params is what modules of a model have in common: the mean and the spread of what is
// drawn for each of them from its seed. No such module has a public data sheet: the
// numbers are our assumptions, in the range of what is published of thermo-optic elements
// in silicon (a survey is Tu et al., "State of the art and perspectives on silicon photonic
// switches", Micromachines 10(1):51, 2019). [DefaultParams] has them all.
//
// A spread is a standard deviation; what is drawn is cut at three of them.
type Params struct {
	// Couplers of an element: cross-coupled power 0.5 with this spread, each on its own.
	CouplerSpread float64 `yaml:"coupler_spread"`

	// Heaters. PowerPi is 22 mW so that 3.3 V at 400 Ω (26.7 mW when hot) give more than π:
	// with 25 mW one module in eight has a state that no arm reaches. With 22 mW about 3
	// arms in 1000 fall short of π, and their elements take the other arm.
	PowerPi          float64 `yaml:"power_pi_mw"`       // for a phase of π
	PowerPiSpread    float64 `yaml:"power_pi_spread"`   // relative
	Resistance       float64 `yaml:"resistance_ohm"`    // at Reference, cold
	ResistanceSpread float64 `yaml:"resistance_spread"` // relative
	TCR              float64 `yaml:"tcr_per_k"`         // of the resistance
	Rise             float64 `yaml:"rise_k"`            // of a heater's temperature per π

	// Response of the phase to heat: 1-SlowWeight of it with Tau, SlowWeight with TauSlow
	// (the substrate). The controller's lead network knows these numbers, not the spread.
	Tau           time.Duration `yaml:"tau"`
	TauSlow       time.Duration `yaml:"tau_slow"`
	SlowWeight    float64       `yaml:"slow_weight"`
	ThermalSpread float64       `yaml:"thermal_spread"` // relative, of these three, per element

	// Thermal coupling: radians per radian of the heated element. Next neighbours have
	// between the two, evenly spread; it falls by Decay with each element further. The
	// elements stand in one row, in the order of their numbers.
	CouplingMin   float64 `yaml:"coupling_min"`
	CouplingMax   float64 `yaml:"coupling_max"`
	CouplingDecay float64 `yaml:"coupling_decay"`

	// What time and temperature do to the phase of an element.
	AmbientMin float64 `yaml:"ambient_min_rad_per_k"` // of the case; either sign
	AmbientMax float64 `yaml:"ambient_max_rad_per_k"`
	Reference  float64 `yaml:"reference_c"`         // case temperature to which other numbers belong
	Drift      float64 `yaml:"drift_rad_per_sqrth"` // random walk
	Ageing     float64 `yaml:"ageing_per_1000h"`    // relative rise of the heaters' resistance

	// Light. Losses are positive.
	Launch            float64 `yaml:"launch_mw"` // per lane, behind its modulator
	LaunchSpread      float64 `yaml:"launch_spread_db"`
	LaserDrift        float64 `yaml:"laser_drift_db_per_sqrth"` // random walk, common to all lanes
	ElementLoss       float64 `yaml:"element_loss_db"`
	ElementLossSpread float64 `yaml:"element_loss_spread_db"`
	ArmLossSpread     float64 `yaml:"arm_loss_spread_db"` // between the arms of an element
	CrossingLoss      float64 `yaml:"crossing_loss_db"`   // each, in the loop network
	FacetLoss         float64 `yaml:"facet_loss_db"`      // between chip and fibre
	Tap               float64 `yaml:"tap"`                // share of the light that taps take
	TapSpread         float64 `yaml:"tap_spread"`         // relative, of each tap with its photodiode; 0: all alike

	// Photodiodes and their converters of 12 bits.
	FullScale float64 `yaml:"full_scale_mw"`
	Noise     float64 `yaml:"noise"`       // of a reading, relative
	Floor     float64 `yaml:"noise_floor"` // of a reading, of FullScale
	DarkMin   float64 `yaml:"dark_min"`    // reading without light, steps of the converter
	DarkMax   float64 `yaml:"dark_max"`

	// Power and temperature of the module.
	Power        float64       `yaml:"power_w"`       // without heaters, laser on
	LaserPower   float64       `yaml:"laser_power_w"` // the part of Power that goes with the laser
	DriverFactor float64       `yaml:"driver_factor"` // power drawn for heaters over that in them
	RTh          float64       `yaml:"rth_k_per_w"`   // from case to ambient
	CaseTau      time.Duration `yaml:"case_tau"`
}

// DefaultParams returns the parameters of the model ocstrx-8x112g.
func DefaultParams() Params {
	return Params{
		CouplerSpread: 0.02,
		PowerPi:       22, PowerPiSpread: 0.06, Resistance: 400, ResistanceSpread: 0.05, TCR: 1e-3, Rise: 17,
		Tau: 15 * time.Microsecond, TauSlow: time.Millisecond, SlowWeight: 0.05, ThermalSpread: 0.02,
		CouplingMin: 0.01, CouplingMax: 0.05, CouplingDecay: 0.4,
		AmbientMin: 0.01, AmbientMax: 0.05, Reference: 40, Drift: 0.01, Ageing: 1e-3,
		Launch: 2, LaunchSpread: 0.2, LaserDrift: 0.01,
		ElementLoss: 0.5, ElementLossSpread: 0.05, ArmLossSpread: 0.03, CrossingLoss: 0.08, FacetLoss: 1.2, Tap: 0.05,
		FullScale: 2.5, Noise: 0.003, Floor: 5e-4, DarkMin: 8, DarkMax: 30,
		Power: 8.5, LaserPower: 1.5, DriverFactor: 3.5, RTh: 1.2, CaseTau: 5 * time.Second,
	}
}

// check returns an error that names the parameter if one is outside of what the model can
// make sense of.
func (p Params) check() error {
	for _, q := range []struct {
		key       string
		v, lo, hi float64
	}{
		{"coupler_spread", p.CouplerSpread, 0, 0.15},
		{"power_pi_mw", p.PowerPi, 0.05, 100}, {"power_pi_spread", p.PowerPiSpread, 0, 0.3},
		{"resistance_ohm", p.Resistance, 50, 1e5}, {"resistance_spread", p.ResistanceSpread, 0, 0.3},
		{"tcr_per_k", p.TCR, 0, 0.01}, {"rise_k", p.Rise, 0, 100},
		{"slow_weight", p.SlowWeight, 0, 0.5}, {"thermal_spread", p.ThermalSpread, 0, 0.2},
		{"coupling_min", p.CouplingMin, 0, 0.2}, {"coupling_max", p.CouplingMax, p.CouplingMin, 0.2}, {"coupling_decay", p.CouplingDecay, 0, 1},
		{"ambient_min_rad_per_k", p.AmbientMin, 0, 1}, {"ambient_max_rad_per_k", p.AmbientMax, p.AmbientMin, 1},
		{"reference_c", p.Reference, -40, 100}, {"drift_rad_per_sqrth", p.Drift, 0, 10}, {"ageing_per_1000h", p.Ageing, 0, 1},
		{"launch_mw", p.Launch, 0, 100}, {"launch_spread_db", p.LaunchSpread, 0, 3}, {"laser_drift_db_per_sqrth", p.LaserDrift, 0, 3},
		{"element_loss_db", p.ElementLoss, 0, 10}, {"element_loss_spread_db", p.ElementLossSpread, 0, 3},
		{"arm_loss_spread_db", p.ArmLossSpread, 0, 3}, {"crossing_loss_db", p.CrossingLoss, 0, 3}, {"facet_loss_db", p.FacetLoss, 0, 20},
		{"tap", p.Tap, 0.001, 0.5}, {"tap_spread", p.TapSpread, 0, 0.3},
		{"full_scale_mw", p.FullScale, 0.01, 6.5}, {"noise", p.Noise, 0, 0.5}, {"noise_floor", p.Floor, 0, 0.5},
		{"dark_min", p.DarkMin, 0, 1000}, {"dark_max", p.DarkMax, p.DarkMin, 1000},
		{"power_w", p.Power, 0, 20}, {"laser_power_w", p.LaserPower, 0, p.Power}, {"driver_factor", p.DriverFactor, 1, 20}, {"rth_k_per_w", p.RTh, 0, 20},
	} {
		if math.IsNaN(q.v) || q.v < q.lo || q.v > q.hi {
			return fmt.Errorf("%s: %g is outside %g to %g", q.key, q.v, q.lo, q.hi)
		}
	}
	for _, q := range []struct {
		key       string
		v, lo, hi time.Duration
	}{
		{"tau", p.Tau, 100 * time.Nanosecond, 10 * time.Millisecond},
		{"tau_slow", p.TauSlow, 2 * p.Tau, 10 * time.Second},
		{"case_tau", p.CaseTau, 10 * time.Millisecond, time.Hour},
	} {
		if q.v < q.lo || q.v > q.hi {
			return fmt.Errorf("%s: %v is outside %v to %v", q.key, q.v, q.lo, q.hi)
		}
	}
	return nil
}

// dac returns the voltage that the converter of a heater gives when asked for volts.
func dac(volts float64) float64 {
	if math.IsNaN(volts) {
		return 0
	}
	return ocst.DriveOf(volts, false).Volts()
}
