package proto_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

var update = flag.Bool("update", false, "write golden files and the sessions of the page anew")

// samples are one message of each kind, with every key.
var samples = []proto.Message{
	&proto.Hello{Version: 1, Job: "lab-job", Rail: "rail0", Rank: 3, Host: "gpu4", LocalRank: 1, Epoch: 7, Run: 2, Holds: []proto.OpRef{{Group: "dp/1", Op: 5}}},
	&proto.Welcome{Epoch: 8, Run: 2, MonoNS: 81_000_000_000, TimeoutNS: 60_000_000_000},
	&proto.JoinGroup{Group: "dp/1", Axis: "dp", Members: []int{2, 3}, Index: 1},
	&proto.GroupOK{Group: "dp/1", Domain: "rail", Rails: []string{"rail0", "rail1"}},
	&proto.PhaseTable{Step: 5, Period: map[string]uint64{"dp/1": 12, "pp/1@0": 2}, Starts: []proto.OpRef{{Group: "pp/1", Op: 1}}, Ends: []proto.OpRef{{Group: "dp/1", Op: 11}}},
	&proto.Boundaries{Starts: []proto.OpRef{{Group: "pp/1", Op: 1}}, Ends: []proto.OpRef{{Group: "dp/1", Op: 11}}},
	&proto.TopoWrite{Req: 9, Epoch: 8, OpRef: proto.OpRef{Group: "pp/1", Op: 1, Way: 0}, Mode: proto.Provision, Last: &proto.OpRef{Group: "dp/1", Op: 11}, IssueNS: 81_000_000_001},
	&proto.Withdraw{Req: 9},
	&proto.Release{Epoch: 8, OpRef: proto.OpRef{Group: "pp/1", Op: 3, Way: 1}},
	&proto.TopoAck{Req: 9, ID: "00", Generation: 4, Result: proto.Applied, ReadyNS: 81_000_000_002, CommandNS: 81_000_000_003, SwitchAckNS: 81_200_000_003, VerifiedNS: 81_201_000_003, Removed: 8, Added: 4},
	&proto.TopoNack{Req: 9, Code: proto.RankLost, Detail: `rank 2 of rail0 (gpu3) is gone, and "pp/1" waits for it`},
	&proto.Fallback{Rail: "rail0", Generation: 5, Dead: true, Reason: "ocs1 did not answer within 1s (3 attempts)"},
	&proto.Resume{Rail: "rail0", Generation: 6},
	&proto.Bye{Code: proto.Stale, Reason: "another controller has the job"},
	&proto.Open{Version: 1, Rail: "rail0", Controller: "ocslab on gpu1", Job: opus.Job{Name: "lab-job", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}, Ports: 2}, Policy: opus.Pair, Resume: 8},
	&proto.Opened{Epoch: 8, Generation: 4, Shape: proto.Digits, ID: "11", Circuits: [][2]int{{0, 3}, {1, 2}}, Reason: "the rail begins with it"},
	&proto.Apply{Req: 1, Epoch: 8, ID: "00", Join: [][2]int{{0, 5}}, Part: []int{3}},
	&proto.GiantRing{Req: 2, Epoch: 8, Reason: "a change failed"},
	&proto.Mark{Req: 3, Epoch: 8, Dead: true, Reason: "the ring failed, too"},
	&proto.Done{Req: 1, Generation: 5, Shape: proto.Digits, Result: proto.Applied, Removed: 8, Added: 8, Attempts: 2, CommandNS: 1, SwitchAckNS: 2, VerifiedNS: 3, LightNS: 4},
	&proto.Failed{Req: 2, Code: proto.Verify, Attempts: 3, Detail: "ocs1 reads back 1>36 instead of 1>38"},
	&proto.Alarm{Generation: 5, Detail: "rail rail0: 2 ports moved", Circuits: [][2]int{{0, 3}}},
}

func read(b []byte) (proto.Message, error) { return proto.Read(bufio.NewReader(bytes.NewReader(b))) }

func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestAppend(t *testing.T) {
	for _, x := range []struct {
		m    proto.Message
		want string
	}{
		{&proto.Withdraw{Req: 7}, "\x00\x00\x00\x1b" + `{"kind":"withdraw","req":7}`},
		{&proto.Release{Epoch: 2, OpRef: proto.OpRef{Group: "pp/1", Op: 3, Way: 1}}, "\x00\x00\x00\x3c" + `{"kind":"release","epoch":2,"group":"pp/1","op":3,"way":1}`},
	} {
		got, err := proto.Append(nil, x.m)
		if err != nil {
			t.Fatal(err)
		}
		if string(got[4:]) != x.want[4:] || int(got[3]) != len(got)-4 {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}

// All samples behind one another are read as they were written, however few bytes come at a time.
func TestRead_Stream(t *testing.T) {
	var stream []byte
	for _, m := range samples {
		var err error
		if stream, err = proto.Append(stream, m); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(stream)))
	for _, want := range samples {
		got, err := proto.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", proto.KindOf(want), diff)
		}
	}
	if _, err := proto.Read(r); !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("at the end: got %v, want io.EOF", err)
	}
}

func TestRead_Torn(t *testing.T) {
	for _, m := range samples {
		whole, err := proto.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(whole); n++ {
			if m, err := read(whole[:n]); !errors.Is(err, io.ErrUnexpectedEOF) || m != nil {
				t.Fatalf("%d bytes of %q: got %v, %v, want io.ErrUnexpectedEOF", n, whole, m, err)
			}
		}
	}
}

func TestRead_Hostile(t *testing.T) {
	for name, x := range map[string]struct {
		in   []byte
		want string
	}{
		"http":             {[]byte("GET / HTTP/1.1\r\n\r\n"), `it begins with "GET "`},
		"tls":              {[]byte("\x16\x03\x01\x02\x00\x01\x00"), "16777216 is the most"},
		"longer than most": {[]byte{1, 0, 0, 1, '{'}, "16777217"},
		"empty":            {frame(""), "unexpected end of JSON"},
		"not JSON":         {frame("hello"), "invalid character"},
		"not an object":    {frame(`["hello"]`), "cannot unmarshal array"},
		"null":             {frame("null"), `unknown kind ""`},
		"no kind":          {frame(`{"req":1}`), `unknown kind ""`},
		"unknown kind":     {frame(`{"kind":"topo-read"}`), `unknown kind "topo-read"`},
		"kind of number":   {frame(`{"kind":7}`), "cannot unmarshal number"},
		"two objects":      {frame(`{"kind":"bye"}{"kind":"bye"}`), "after top-level value"},
		"wrong type":       {frame(`{"kind":"withdraw","req":"1"}`), "withdraw: "},
		"negative":         {frame(`{"kind":"withdraw","req":-1}`), "withdraw: "},
		"fraction":         {frame(`{"kind":"withdraw","req":1.5}`), "withdraw: "},
		"beyond 64 bits":   {frame(`{"kind":"withdraw","req":18446744073709551616}`), "withdraw: "},
		"deep":             {frame(strings.Repeat("[", 20000)), "exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := read(x.in)
			if !errors.Is(err, proto.ErrFrame) || m != nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("got %v, %v, want ErrFrame with %q", m, err, x.want)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
}

// A length is only a claim: memory grows with what has come.
func TestRead_ClaimedLength(t *testing.T) {
	claim := append(binary.BigEndian.AppendUint32(nil, proto.MaxFrame), `{"kind":"bye"}`...)
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = read(claim)
		}
	}).AllocedBytesPerOp(); n > 1<<20 {
		t.Errorf("a frame that claims %d bytes and has 14 took %d bytes of memory", proto.MaxFrame, n)
	}
}

// Keys that a reader does not know are ignored, so either side may be newer.
func TestRead_UnknownKeys(t *testing.T) {
	got, err := read(frame(`{"colour":{"a":[1]},"kind":"withdraw","req":7,"way":"up"}`))
	if diff := cmp.Diff(proto.Message(&proto.Withdraw{Req: 7}), got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestAppend_TooLong(t *testing.T) {
	fits := proto.MaxFrame - len(`{"kind":"bye","reason":""}`)
	before := []byte("before")
	got, err := proto.Append(before, &proto.Bye{Reason: strings.Repeat("x", fits)})
	if err != nil || len(got) != len(before)+4+proto.MaxFrame {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if m, err := read(got[len(before):]); err != nil || len(m.(*proto.Bye).Reason) != fits {
		t.Errorf("the longest frame does not read back: %v", err)
	}
	got, err = proto.Append(before, &proto.Bye{Reason: strings.Repeat("x", fits+1)})
	if err == nil || string(got) != "before" {
		t.Errorf("a frame too long: got %d bytes, %v", len(got), err)
	}
}

// drawn is any message of any kind with any values.
func drawn(t *rapid.T) proto.Message {
	kind := rapid.SampledFrom(proto.Kinds()).Draw(t, "kind")
	m, err := proto.Parse([]byte(`{"kind":"` + string(kind) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, reflect.ValueOf(m).Elem(), false)
	return m
}

func fill(t *rapid.T, v reflect.Value, optional bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), strings.Contains(v.Type().Field(i).Tag.Get("json"), "omitempty"))
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), false)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), false)
		}
	case reflect.Slice:
		// An empty list that may be missing is missing; one that may not is a list, or null.
		low := -1
		if optional {
			low = 0
		}
		if n := rapid.IntRange(low, 3).Draw(t, "len"); n >= 0 && (n > 0 || !optional) {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), false)
			}
		}
	case reflect.Map:
		if n := rapid.IntRange(-1, 3).Draw(t, "len"); n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(t, key, false)
				fill(t, value, false)
				v.SetMapIndex(key, value)
			}
		}
	default:
		t.Fatalf("a message has a %s", v.Kind())
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []proto.Message
		var stream []byte
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			m := drawn(t)
			all = append(all, m)
			var err error
			if stream, err = proto.Append(stream, m); err != nil {
				t.Fatal(err)
			}
		}
		r := bufio.NewReader(bytes.NewReader(stream))
		for _, want := range all {
			got, err := proto.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// again checks that what was parsed is written and read as the same.
func again(t *testing.T, m proto.Message) {
	t.Helper()
	b, err := proto.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b[4:]) {
		t.Fatalf("%q is no JSON", b[4:])
	}
	back, err := read(b)
	if err != nil {
		t.Fatalf("%q does not read back: %v", b, err)
	}
	twice, err := proto.Append(nil, back)
	if err != nil || !bytes.Equal(b, twice) {
		t.Fatalf("%q becomes %q, %v", b, twice, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range samples {
		b, err := proto.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := proto.Parse(body)
		if err != nil {
			if !errors.Is(err, proto.ErrFrame) || m != nil {
				t.Fatalf("%v, %v", m, err)
			}
			return
		}
		again(t, m)
	})
}

func FuzzRead(f *testing.F) {
	f.Fuzz(func(t *testing.T, stream []byte) {
		for r := bufio.NewReader(bytes.NewReader(stream)); ; {
			m, err := proto.Read(r)
			if err != nil {
				if m != nil {
					t.Fatalf("%v and %v", m, err)
				}
				return
			}
			again(t, m)
		}
	})
}
