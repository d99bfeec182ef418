package trace_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// Two stages of one rank, as chakra_jsonizer writes them: 64-bit numbers as text, objects one after the other, not in the order of
// their dependencies.
const (
	chakra0 = `{
  "version": "0.0.4"
}{
  "id": "3", "name": "send", "type": "COMM_SEND_NODE", "dataDeps": ["2"],
  "attr": [{"name": "is_cpu_op", "boolVal": false}, {"name": "comm_size", "int64Val": "1000"}, {"name": "comm_dst", "int32Val": 2}]
}{
  "id": "2", "name": "forward", "type": "COMP_NODE", "durationMicros": "30", "dataDeps": ["1"], "attr": [{"name": "is_cpu_op", "boolVal": false}]
}{
  "id": "5", "name": "launch", "type": "COMP_NODE", "durationMicros": "400", "attr": [{"name": "is_cpu_op", "boolVal": true}]
}{
  "id": "1", "name": "gather", "type": "COMM_COLL_NODE",
  "attr": [{"name": "comm_type", "int64Val": "2"}, {"name": "comm_size", "int64Val": "64"}, {"name": "pg_name", "stringVal": "7"}]
}{
  "id": "4", "name": "loss", "type": "COMM_COLL_NODE", "ctrlDeps": ["3"],
  "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "8"}]
}`
	chakra1 = `{"version": "0.0.4"}
{"id": "1", "name": "recv", "type": "COMM_RECV_NODE", "attr": [{"name": "comm_size", "int64Val": "1000"}, {"name": "comm_src", "int32Val": 0}]}
{"id": "2", "name": "forward", "type": "COMP_NODE", "durationMicros": "50", "dataDeps": ["1"]}
{"id": "3", "name": "loss", "type": "COMM_COLL_NODE", "dataDeps": ["2"], "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "8"}]}
{"id": "4", "name": "optimizer", "type": "COMP_NODE", "durationMicros": "5", "dataDeps": ["3"]}`
)

var chakraJob = trace.Chakra{
	Name: "two", Job: opus.Job{Stages: 2}, Rails: 2,
	Groups: map[string]string{"7": "scale-up", "": "front-end/pp", "8": "cp"},
}

func TestImportChakra(t *testing.T) {
	tr, err := trace.ImportChakra(chakraJob, strings.NewReader(chakra0), strings.NewReader(chakra1))
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Step{{
		TailUS: 5,
		Ranks: [][]trace.Op{{
			{Kind: trace.AllGather, Net: trace.ScaleUp, Bytes: 64, Note: "gather"},
			{Kind: trace.Send, Peer: 1, Bytes: 1000, ComputeBeforeUS: 30, Note: "send"},
			{Kind: trace.AllReduce, Net: trace.FrontEnd, Bytes: 8, Note: "loss"},
		}, {
			{Kind: trace.Recv, Peer: 0, Bytes: 1000, Note: "recv"},
			{Kind: trace.AllReduce, Net: trace.FrontEnd, Bytes: 8, ComputeBeforeUS: 50, Note: "loss"},
		}},
	}}
	if diff := cmp.Diff(want, tr.Steps); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestImportChakraRefuses(t *testing.T) {
	node := func(rest string) string { return `{"version":"0.0.4"}{"id":"1","name":"x",` + rest + `}` }
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "x", "object 0"},
		{"cut off", chakra0[:len(chakra0)-5], "object 5"},
		{"twice", node(`"type":"COMP_NODE"`) + `{"id":"1","type":"COMP_NODE"}`, "two nodes 1"},
		{"missing", node(`"type":"COMP_NODE","dataDeps":["9"]`), "node 1 depends on node 9"},
		{"circle", node(`"type":"COMP_NODE","dataDeps":["1"]`), "1 of its 1 nodes depend on each other"},
		{"number", node(`"type":"COMP_NODE","durationMicros":"much"`), "object 1"},
		{"negative", node(`"type":"COMP_NODE","durationMicros":-1`), "its duration of -1 µs"},
		{"no size", node(`"type":"COMM_COLL_NODE"`), "no attribute comm_size"},
		{"broadcast", node(`"type":"COMM_COLL_NODE","attr":[{"name":"comm_size","int64Val":"1"},{"name":"comm_type","int64Val":"5"}]`), "comm_type is 5"},
		{"group", node(`"type":"COMM_COLL_NODE","attr":[{"name":"comm_size","int64Val":"1"},{"name":"comm_type","int64Val":"0"},{"name":"pg_name","stringVal":"9"}]`), `what process group "9" is`},
		{"axis", node(`"type":"COMM_COLL_NODE","attr":[{"name":"comm_size","int64Val":"1"},{"name":"comm_type","int64Val":"0"},{"name":"pg_name","stringVal":"8"}]`), `is said to be along "cp"`},
		{"no peer", node(`"type":"COMM_SEND_NODE","attr":[{"name":"comm_size","int64Val":"1"}]`), "no attribute comm_dst"},
		{"peer", node(`"type":"COMM_SEND_NODE","attr":[{"name":"comm_size","int64Val":"1"},{"name":"comm_dst","int32Val":4}]`), "comm_dst is 4, and the job has 4 ranks"},
		{"unmatched", node(`"type":"COMM_SEND_NODE","attr":[{"name":"comm_size","int64Val":"1"},{"name":"comm_dst","int32Val":2}]`), "on the front-end network, and rank 0 none"},
	} {
		_, err := trace.ImportChakra(chakraJob, strings.NewReader(tt.text), strings.NewReader(chakra1))
		if !errors.Is(err, trace.ErrTrace) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to say %q", tt.name, err, tt.want)
		}
	}
	if _, err := trace.ImportChakra(chakraJob, strings.NewReader(chakra0)); !errors.Is(err, trace.ErrTrace) {
		t.Errorf("one of two: %v", err)
	}
	broken := errors.New("the disk is gone")
	if _, err := trace.ImportChakra(chakraJob, iotest.ErrReader(broken), strings.NewReader(chakra1)); !errors.Is(err, broken) || errors.Is(err, trace.ErrTrace) {
		t.Errorf("a reader that fails: %v", err)
	}
}

func FuzzImportChakra(f *testing.F) {
	f.Add(chakra0)
	f.Add(`{"id":1,"type":"COMP_NODE","durationMicros":9}`)
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := trace.ImportChakra(chakraJob, strings.NewReader(text), strings.NewReader(chakra1))
		if err == nil {
			tr.StepTime()
		} else if !errors.Is(err, trace.ErrTrace) {
			t.Fatal(err)
		}
	})
}
