package timeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/timeline"
)

func TestCheck(t *testing.T) {
	at := func(stage timeline.Stage, subject string, earliest, latest int64) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: subject, Interval: timeline.Between(earliest, latest), Source: "x", Reconfiguration: 1}
	}
	command := at(timeline.Command, "rail0", 100, 110)
	elsewhere := at(timeline.Light, "p", 0, 1)
	elsewhere.Reconfiguration = 2

	for _, tc := range []struct {
		name  string
		marks []timeline.Mark
		want  []timeline.Stage // effects that violate, in order
	}{
		{"Empty", nil, nil},
		{"InOrder", []timeline.Mark{
			command, at(timeline.Ack, "rail0", 120, 120), at(timeline.Dark, "p", 130, 140), at(timeline.Light, "p", 150, 160),
			at(timeline.CarrierDown, "n", 130, 135), at(timeline.CarrierUp, "n", 170, 171),
		}, nil},
		{"AckAfterLight", []timeline.Mark{command, at(timeline.Light, "p", 150, 160), at(timeline.Ack, "rail0", 200, 200)}, nil},
		{"Overlapping", []timeline.Mark{command, at(timeline.Ack, "rail0", 90, 100)}, nil},
		{"AckBeforeCommand", []timeline.Mark{command, at(timeline.Ack, "rail0", 90, 99)}, []timeline.Stage{timeline.Ack}},
		{"AckOfAnotherSwitch", []timeline.Mark{command, at(timeline.Ack, "rail1", 90, 99)}, nil},
		{"AllBeforeCommand", []timeline.Mark{
			at(timeline.Dark, "p", 0, 1), at(timeline.TrafficLost, "q", 2, 3), at(timeline.CarrierDown, "n", 4, 5),
			at(timeline.Light, "p", 6, 7), at(timeline.Firmware, "n", 8, 9), at(timeline.CarrierUp, "n", 10, 11),
			at(timeline.Traffic, "q", 12, 13), command,
		}, []timeline.Stage{
			timeline.Dark, timeline.TrafficLost, timeline.CarrierDown, timeline.Light, timeline.Firmware, timeline.CarrierUp, timeline.Traffic,
		}},
		{"SecondCommandExplains", []timeline.Mark{at(timeline.Command, "rail1", 50, 60), command, at(timeline.Light, "p", 90, 95)}, nil},
		{"LightBeforeDark", []timeline.Mark{at(timeline.Dark, "p", 20, 30), at(timeline.Light, "p", 10, 19)}, []timeline.Stage{timeline.Light}},
		{"LightOfAnotherPort", []timeline.Mark{at(timeline.Dark, "p", 20, 30), at(timeline.Light, "q", 10, 19)}, nil},
		{"FlapIsInOrder", []timeline.Mark{
			at(timeline.Dark, "p", 20, 30), at(timeline.Light, "p", 40, 50), at(timeline.Dark, "p", 60, 70), at(timeline.Light, "p", 80, 90),
		}, nil},
		{"FirmwareBeforeLight", []timeline.Mark{at(timeline.Light, "n", 20, 30), at(timeline.Firmware, "n", 0, 1)}, []timeline.Stage{timeline.Firmware}},
		{"FirmwareOfAnotherSubject", []timeline.Mark{at(timeline.Light, "p", 20, 30), at(timeline.Firmware, "n", 0, 1)}, nil},
		{"UpBeforeDown", []timeline.Mark{at(timeline.CarrierUp, "n", 0, 1), at(timeline.CarrierDown, "n", 2, 3)}, []timeline.Stage{timeline.CarrierUp}},
		{"TrafficBeforeLost", []timeline.Mark{at(timeline.Traffic, "q", 0, 1), at(timeline.TrafficLost, "q", 2, 3)}, []timeline.Stage{timeline.Traffic}},
		{"OtherReconfiguration", []timeline.Mark{elsewhere, command}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []timeline.Stage
			for _, v := range timeline.Check(tc.marks) {
				got = append(got, v.Effect.Stage)
				if !v.Effect.Before(v.Cause.Interval) || v.Rule == "" {
					t.Errorf("not a violation: %v", v)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}

	got := timeline.Check([]timeline.Mark{command, at(timeline.Ack, "rail0", 90, 90)})[0].Error()
	const want = "timeline: reconfiguration 1: a switch acknowledges after it was commanded, " +
		"but ack of rail0 at 90 ns (x) came before command of rail0 at 105 ns ±5 (x)"
	if got != want {
		t.Errorf("Error = %q\nwant    %q", got, want)
	}
}
