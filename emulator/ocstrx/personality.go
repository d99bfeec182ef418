package ocstrx

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
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
const MaxModules = 16

//go:embed personalities/*.yaml
var builtin embed.FS

// Models returns the names of the personalities that come with ocslab.
func Models() []string {
	names, err := fs.Glob(builtin, "personalities/*.yaml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, n := range names {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(n, "personalities/"), ".yaml")
	}
	return names
}

// LoadPersonality returns the personality that comes with ocslab under a name or, when that
// ends in .yaml or .yml, reads the file of that path. Errors in a file name its line and
// column.
func LoadPersonality(nameOrPath string) (Personality, error) {
	if strings.HasSuffix(nameOrPath, ".yaml") || strings.HasSuffix(nameOrPath, ".yml") {
		data, err := os.ReadFile(nameOrPath)
		if err != nil {
			return Personality{}, fmt.Errorf("personality: %w", err)
		}
		return ParsePersonality(nameOrPath, data)
	}
	data, err := builtin.ReadFile("personalities/" + nameOrPath + ".yaml")
	if err != nil {
		return Personality{}, fmt.Errorf("there is no model %q: want one of %s, or a .yaml file", nameOrPath, strings.Join(Models(), ", "))
	}
	return ParsePersonality(nameOrPath+".yaml", data)
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
