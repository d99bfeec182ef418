package tl1switch

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/ocslab/ocslab/ocs"
)

var _ ocs.Attenuator = (*Switch)(nil)

// Attenuation reads with one RTRV-PORT-ATTEN. It is told in the modes NONE and
// REL; see [ocs.Attenuator].
func (sw *Switch) Attenuation(ctx context.Context, p ocs.Port) (ocs.DB, error) {
	const op = "read attenuation"
	var fields []string
	a, err := sw.perPort(ctx, op, "RTRV-PORT-ATTEN", []ocs.Port{p}, func(q ocs.Port, rest string) bool {
		if q == p {
			fields = strings.Split(rest, ",")
		}
		return len(fields) == 3
	})
	if err != nil {
		return 0, err
	}
	fail := func(why error, format string, args ...any) error {
		return sw.fail(op, "", string(a.msg.Raw), fmt.Errorf(format+": %w", append(args, why)...))
	}
	if fields == nil {
		return 0, fail(ocs.ErrNotSupported, "port %d has no attenuator", p)
	}
	mode, level, ref := strings.ToUpper(fields[0]), fields[1], strings.TrimSpace(fields[2])
	switch mode {
	case "", "NONE":
		return 0, nil
	case "REL":
		if ref != "" && ref != "0" {
			return 0, fail(ocs.ErrUntold, "the attenuator of port %d keeps its light relative to that of port %.5s", p, ref)
		}
		x, ok := number(level)
		if !ok || math.IsInf(x, 0) {
			return 0, sw.garbled(op, a, level)
		}
		return ocs.DB(0 - x), nil
	}
	return 0, fail(ocs.ErrUntold, "the attenuator of port %d is in mode %.10s, in which the device does not say how much it attenuates", p, mode)
}

// SetAttenuation sends one SET-PORT-ATTEN, with mode REL or, for zero, NONE.
func (sw *Switch) SetAttenuation(ctx context.Context, p ocs.Port, loss ocs.DB) error {
	const op = "set attenuation"
	if x := float64(loss); math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return sw.fail(op, "", "", fmt.Errorf("a loss of %v is none that an attenuator can make", loss))
	}
	params := "MODE=NONE"
	if loss > 0 {
		params = "MODE=REL,LEVEL=" + signed(-float64(loss))
	}
	if !sw.d.has("SET-PORT-ATTEN") {
		return sw.lacks(op)
	}
	_, err := sw.do(ctx, request{op: op, code: "SET-PORT-ATTEN", aid: portList([]ocs.Port{p}), blocks: []string{"", params}, again: true})
	return err
}
