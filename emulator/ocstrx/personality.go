package ocstrx

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ocslab/ocslab/internal/builtin"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// Personality is a model: what its modules are like, and what board they sit on. It is read
// from a YAML file; units are in the names of the keys, durations carry theirs.
type Personality struct {
	Model       string `yaml:"model,required"`
	Description string `yaml:"description"`
	Modules     int    `yaml:"modules,required"` // on the board, from 1 to 16
	Trigger     bool   `yaml:"trigger"`          // the board has a trigger line to all of them
	Plate       bool   `yaml:"plate"`            // and a plate that sets their temperature
	Params      `yaml:"device"`
}

// MaxModules is how many modules a board has at most.
const MaxModules = trxlink.MaxSlots

//go:embed personalities/*.yaml
var embedded embed.FS

var personalities = builtin.Files{FS: embedded, Dir: "personalities", What: "model"}

// Models returns the names of the personalities that come with ocslab.
func Models() []string { return personalities.Names() }

// LoadPersonality returns the personality that comes with ocslab under a name or, when that
// ends in .yaml or .yml, reads the file of that path. Errors in a file name its line and
// column.
func LoadPersonality(nameOrPath string) (Personality, error) {
	file, data, err := personalities.Read(nameOrPath)
	if err != nil {
		if file := (*fs.PathError)(nil); errors.As(err, &file) {
			return Personality{}, fmt.Errorf("the personality %s cannot be read: %w", file.Path, file.Err)
		}
		return Personality{}, fmt.Errorf("personality: %w", err)
	}
	return ParsePersonality(file, data)
}

// ParsePersonality reads a personality, takes from [DefaultParams] what it does not say, and
// checks it. The name is for error messages.
func ParsePersonality(name string, data []byte) (Personality, error) {
	p := Personality{Params: DefaultParams()}
	if err := strictyaml.Decode(name, data, &p); err != nil {
		return Personality{}, err
	}
	if err := p.check(); err != nil {
		return Personality{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (p Personality) check() error {
	if p.Modules < 1 || p.Modules > MaxModules {
		return fmt.Errorf("modules: %d is outside 1 to %d", p.Modules, MaxModules)
	}
	if p.Model == "" || len(p.Model) > 40 {
		return fmt.Errorf("model: %.50q: want a name of 1 to 40 characters", p.Model)
	}
	if err := p.Params.check(); err != nil {
		return fmt.Errorf("device.%w", err)
	}
	return nil
}
