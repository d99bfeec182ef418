package rail

import (
	"encoding/json"
	"testing"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// FuzzJournal: whatever is in the file, what is believed of it is a configuration of the job, and all of the rest is
// moved aside.
func FuzzJournal(f *testing.F) {
	opt := &Options{Rail: "rail0", Policy: opus.Pair, Job: opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}}
	first, err := json.Marshal(base{Version: journalVersion, Rail: "rail0", Job: opt.Job, Policy: opt.Policy, Intent: config{Shape: proto.Giant}})
	if err != nil {
		f.Fatal(err)
	}
	head := string(first) + "\n"
	f.Add(head)
	f.Add(head + `{"epoch":1,"by":"x"}` + "\n" + `{"do":2,"whole":{"shape":"digits","topology_id":"11"}}` + "\n" + `{"did":2,"generation":1}` + "\n")
	f.Add(head + `{"do":3,"join":[[0,2]],"part":[1]}` + "\n" + `{"failed":3,"unsure":[0,1,2],"holds":{"shape":"circuits","circuits":[[4,6]]}}` + "\n")
	f.Add(head + `{"do":3,"join":[[0,99]]}` + "\n")
	f.Add(head + `{"do":3,"whole":{"shape":"digits","topology_id":"1`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, rest := readJournal([]byte(text), opt)
		if len(rest) > len(text) || text[len(text)-len(rest):] != string(rest) {
			t.Fatalf("%q is not the end of %q", rest, text)
		}
		if !p.known {
			if len(rest) != len(text) {
				t.Fatal("something was lost")
			}
			return
		}
		peers, err := p.Intent.peers(opt)
		if err != nil {
			t.Fatal(err)
		}
		for q, to := range peers {
			if to >= 0 && (int(to) >= len(peers) || peers[to] != int32(q) || int(to) == q) {
				t.Fatalf("%v is no matching", peers)
			}
		}
	})
}
