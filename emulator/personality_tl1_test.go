package emulator_test

import (
	"strings"
	"testing"

	"github.com/ocslab/ocslab/emulator"
)

func TestParsePersonality_TL1Errors(t *testing.T) {
	const calient, glimmerglass = "speaks: [tl1]\ntl1: {dialect: calient", "speaks: [tl1]\ntl1: {dialect: glimmerglass"
	for _, test := range []struct{ add, want string }{
		{"tl1: {dialect: klingon}\n", "glimmerglass"},
		{"tl1: {dialect: calient}\n", "speaks tl1 and nothing else"},
		{calient + ", block: -1}\n", "tl1.block"},
		{calient + ", shelf: 2}\n", "tl1.shelf"},
		{calient + ", shelf: 2, slot: -1}\n", "tl1.shelf"},
		{calient + ", notice: \"a\\nb\"}\n", "tl1.notice"},
		{calient + ", fail: [9]}\n", "no port 9"},
		{glimmerglass + ", locks: [{port: 5, user: bob}]}\n", "no ingress port 5"},
		{glimmerglass + ", locks: [{port: 1, user: b b}]}\n", "b b"},
	} {
		_, err := emulator.ParsePersonality("file.yaml", []byte(minimal+test.add))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.add, err, test.want)
		}
	}
	for size, dialect := range map[string]string{"4x5": calient, "4xCC": calient, "8xCC": glimmerglass, "10000x4": glimmerglass} {
		text := strings.Replace(minimal, "4x4", size, 1) + dialect + "}\n"
		if _, err := emulator.ParsePersonality("f", []byte(text)); err == nil || !strings.Contains(err.Error(), size) {
			t.Errorf("%s: error %v", size, err)
		}
	}
}
