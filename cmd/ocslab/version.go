package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, revision := version()
			if a.set.JSON {
				a.json(struct {
					Kind     string `json:"kind"`
					Version  string `json:"version"`
					Revision string `json:"revision"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{"version", v, revision, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
				return nil
			}
			if revision != "" {
				v += " (" + revision + ")"
			}
			a.printf("ocslab %s, %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// programName is this program in words, as records of what it has made name it: "ocslab v0.9.0
// 4f2a6c0b1d3e".
func programName() string {
	v, revision := version()
	return strings.TrimSpace("ocslab " + v + " " + revision)
}

// version returns the module version and the revision it was built from, as
// far as the build recorded them.
func version() (v, revision string) {
	v = "(devel)"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v, ""
	}
	if info.Main.Version != "" {
		v = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", modified"
		}
	}
	if revision != "" {
		revision += dirty
	}
	return v, revision
}
