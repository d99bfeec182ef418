package plan

import (
	"reflect"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology"
)

// Schema returns the JSON Schema (draft 2020-12) of experiment files, for editors. What
// passes it may still be refused by [Parse], which sees more and says it better.
func Schema() []byte {
	return strictyaml.Schema(File{}, strictyaml.SchemaOptions{
		Title: "ocslab experiment", Text: schemaText, About: about, Refine: refine,
	})
}

// schemaText describes values that are read from text.
func schemaText(t reflect.Type) map[string]any {
	pattern := func(words ...string) map[string]any {
		return map[string]any{"type": "string", "pattern": "^(" + strings.Join(words, "|") + ")$"}
	}
	const duration = `[0-9.]+[a-zµμ][0-9.a-zµμ]*`
	statistic := `missing|(` + strings.Join(stageWords(), "|") + `)_(` + strings.Join(quantityWords(), "|") + `)`
	switch t {
	case reflect.TypeFor[timeline.Stage]():
		return map[string]any{"enum": timeline.Stages()}
	case reflect.TypeFor[Order]():
		return map[string]any{"enum": []Order{Fixed, Random, Interleaved}}
	case reflect.TypeFor[Wait]():
		return pattern(string(UntilSettled), string(UntilCarrier), string(UntilTraffic), duration)
	case reflect.TypeFor[Statistic]():
		return pattern(statistic)
	case reflect.TypeFor[Limit]():
		return pattern(`\s*(` + statistic + `)\s*(` + strings.Join(ops, "|") + `)\s*[^\s<>=!]+(\s+where\s+\S.*)?\s*`)
	case reflect.TypeFor[Tolerance]():
		return pattern(`[0-9.]+%`, duration)
	case reflect.TypeFor[ocs.Map]():
		return pattern(`[0-9 ,>-]*`)
	}
	return nil
}

// refine says what goes beyond types.
func refine(t reflect.Type, schema map[string]any) {
	properties := schema["properties"].(map[string]any)
	set := func(key, what string, value any) { properties[key].(map[string]any)[what] = value }
	switch t {
	case reflect.TypeFor[File]():
		set("sequence", "type", "array")
		set("sequence", "minItems", 2)
		set("repeats", "minimum", 1)
		set("repeats", "maximum", MostPoints)
		set("tolerate", "minimum", 0)
		set("tolerate", "maximum", mostTolerated)
		set("warm_ups", "minimum", 0)
		set("warm_ups", "maximum", mostWarmUps)
		params := map[string]any{}
		for _, p := range known {
			params[p.Name] = map[string]any{"type": "string", "description": p.About}
		}
		set("parameters", "properties", params)
	case reflect.TypeFor[Axis]():
		schema["minProperties"], schema["maxProperties"] = 1, 1
	case reflect.TypeFor[RandomAxis]():
		set("points", "minimum", 1)
	case reflect.TypeFor[Nulls]():
		set("count", "minimum", 0)
	case reflect.TypeFor[Hook]():
		set("run", "type", "array")
		set("run", "minItems", 1)
	case reflect.TypeFor[Topology]():
		var planners []string
		for _, p := range topology.Planners() {
			planners = append(planners, p.Name)
		}
		set("planner", "enum", planners)
	}
}

// about describes the keys of a file to people who write one.
var about = map[string]string{
	"File.Name":           "What runs of this experiment are called.",
	"File.About":          "What it is for, for the report.",
	"File.Lab":            "The lab file, beside this one; --lab wins.",
	"File.Configurations": "What can be connected, beside the configurations of the lab, and winning over them.",
	"File.Sequence":       "Configurations to go through, again and again; a name may hold ${parameter}.",
	"File.Parameters":     "Parameters that do not vary.",
	"File.Axes":           "Parameters that vary; axes are crossed with each other.",
	"File.Repeats":        "Of each condition. Default 30.",
	"File.WarmUps":        "Laps of the sequence after each set-up that do not count. Default 3.",
	"File.Order":          "Of the points. Default random: set-ups in random order, and all points of one in random order. Interleaved: one repeat of each condition, then the next.",
	"File.Seed":           "Of all that is random. Default 1.",
	"File.Nulls":          "Null toggles: all that a reconfiguration does but the change. Default one for ten points, and at least one for each condition.",
	"File.Wait":           "What ends a reconfiguration: settled (light), carrier, traffic, or a time such as 2s. Default all that is watched.",
	"File.Measure":        "What is measured, and how. Default all that can be.",
	"File.Hooks":          "Commands that are run around things.",
	"File.Limits":         "What the results should keep to, such as carrier_p99 < 4s where firmware=quick.",
	"File.Stop":           "Ends the repeats of a condition when a statistic is known well enough.",
	"File.Tolerate":       "Failures of switches or hosts in a row that are answered by trying the point again, set up anew. Default 0: the first ends the run.",
	"File.Finally":        "What is done at the end of every run, however it ends, such as {light: restore}.",

	"Configuration.Maps":     "Cross-connects by switch, such as 1>33,2>34.",
	"Configuration.Links":    "Pairs of NICs, joined both ways.",
	"Configuration.Topology": "Or what a planner says.",
	"Topology.NICs":          "In order. Default all of the lab.",
	"Topology.With":          "Arguments of the planner; values may hold ${parameter}.",

	"Axis.Grid":         "Every combination of the values.",
	"Axis.Zip":          "The first value of each, then the second; the lists are equally long.",
	"Axis.List":         "What is written.",
	"Axis.Random":       "Drawn values.",
	"RandomAxis.Points": "How many conditions to draw.",
	"RandomAxis.Values": "What to draw from; 0ms..1s and 1..64 are ranges.",

	"Nulls.Count":  "In the whole run.",
	"Nulls.Window": "How long each is watched. Default 1s.",

	"Measure.Stages":   "That statistics and limits are about. Default all.",
	"Measure.Only":     "Hosts and NICs to watch. Default all of the lab.",
	"Measure.Traffic":  "Probe packets between the NICs. Default true.",
	"Measure.Spin":     "Pace packets without sleeping, which takes a core.",
	"Measure.Samples":  "Keep readings of power monitors. Default true.",
	"Measure.Poll":     "Time between sweeps of the carrier counters. Default 100us.",
	"Measure.Tight":    "Sweep without pause.",
	"Measure.Sync":     "Make the kernel announce at once.",
	"Measure.Patience": "How long links and traffic may take. Default 30s.",

	"Hooks.BeforeRun":   "Once, before anything is touched.",
	"Hooks.Setup":       "After each set-up, also on resume.",
	"Hooks.BeforePoint": "Before each repeat.",
	"Hooks.AfterPoint":  "After each repeat.",
	"Hooks.AfterRun":    "When all points are done, before finally.",
	"Hook.Run":          "The command and its arguments; they may hold ${parameter}. No shell.",
	"Hook.Timeout":      "Default 1m.",

	"Stop.When":     "A statistic, such as carrier_p50.",
	"Stop.Within":   "Half the width of its confidence interval: 5% or 20ms.",
	"Stop.After":    "Repeats that are done in any case. Default 10.",
	"Finally.Light": "restore, for the circuits that the run found, or the name of a configuration.",
	"Finally.Hooks": "After the light.",
}
