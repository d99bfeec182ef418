package tl1_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/wire/tl1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// polatis is a session with a Polatis switch, put together from what public
// test suites and drivers send and expect.
var polatis = []struct {
	command []byte
	reply   tl1.Message
}{
	{
		tl1.AppendCommand(nil, "ACT-USER", "", "admin", "1", "root"),
		tl1.Message{Time: "10:00:00", CTAG: "1", Completion: tl1.COMPLD},
	}, {
		tl1.AppendCommand(nil, "OPR-ARC-EQPT", "", "REPMGR", "2", "IND"),
		tl1.Message{Time: "10:00:00", CTAG: "2", Completion: tl1.COMPLD},
	}, {
		tl1.AppendCommand(nil, "RTRV-EQPT", "", "SYSTEM", "3", "", "PARAMETER=SIZE"),
		tl1.Message{Time: "10:00:00", CTAG: "3", Completion: tl1.COMPLD, Text: []string{"SYSTEM:SIZE=16x16"}},
	}, {
		tl1.AppendCommand(nil, "ENT-PATCH", "", "1&2,17&18", "4"),
		tl1.Message{Time: "10:00:01", CTAG: "4", Completion: tl1.COMPLD},
	}, {
		tl1.AppendCommand(nil, "ENT-PATCH", "", "1,18", "5"),
		tl1.Message{Time: "10:00:01", CTAG: "5", Completion: tl1.COMPLD},
	}, {
		tl1.AppendCommand(nil, "RTRV-PATCH", "", "", "6"),
		tl1.Message{Time: "10:00:01", CTAG: "6", Completion: tl1.COMPLD, Text: []string{"1,18"}},
	}, {
		tl1.AppendCommand(nil, "ENT-PATCH", "", "1000,17", "7"),
		tl1.Message{Time: "10:00:01", CTAG: "7", Completion: tl1.DENY, Code: "IDNV", Comments: []string{"Invalid OXC port: 1000"}},
	}, {
		[]byte("RTRV-EQPT::timeout:::PARAMETER=USER;"),
		tl1.Message{Time: "10:00:01", CTAG: "0", Completion: tl1.DENY, Code: "IICT", Comments: []string{"Parse error at offset 20 in command"}},
	}, {
		tl1.AppendCommand(nil, "DLT-PATCH", "", "ALL", "8"),
		tl1.Message{Time: "10:00:02", CTAG: "8", Completion: tl1.COMPLD},
	}, {
		tl1.AppendCommand(nil, "CANC-USER", "", "admin", "9"),
		tl1.Message{Time: "10:00:02", CTAG: "9", Completion: tl1.COMPLD},
	},
}

func TestGoldenPolatisSession(t *testing.T) {
	for _, tt := range []struct {
		name, sid string
		style     tl1.Style
	}{
		{"polatis", "POLATIS1", tl1.Style{}},
		{"polatis-short", "", tl1.Style{ShortLead: true, After: "\r\n>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var (
				script strings.Builder
				stream []byte
				want   []tl1.Message
			)
			for _, step := range polatis {
				m := step.reply
				m.SID, m.Date = tt.sid, "26-11-20"
				reply := tl1.AppendMessage(nil, m, tt.style)
				fmt.Fprintf(&script, "C> %q\nS> %q\n", step.command, reply)
				stream = append(stream, reply...)
				want = append(want, m)
			}
			checkGolden(t, tt.name, script.String())

			got, errs := decode(t, new(tl1.Decoder), stream)
			if len(errs) > 0 {
				t.Errorf("decoding the session: %v", errs)
			}
			if diff := cmp.Diff(want, got, ignoreRaw); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

// calient has the reply to a login with its banner, a reply in two messages
// with the same CTAG, and the answer to a command without one.
const calient = "agent>\r\n   CALIENT01TS 16-10-31 15:01:34\r\nM  1 COMPLD\r\n" +
	"   \"zpollock:zpollock,2\"\r\n   /* NOTICE This is a private computer system;\r\n" +
	"      don't \"pry */\r\n;\r\nagent>" +
	"RTRV-PORT::0:2;\r\n\r\n   CALIENT01TS 16-10-31 15:01:35\r\nM  2 COMPLD\r\n" +
	"   \"1.1.1:WX,NONE,NONE:INAS=OOS-NP,INOS=OOS,INOC=OK,INRS=NPR,OUTAS=OOS-NP,OUTOS=OOS,OUTOC=OK,OUTRS=NPR\"\r\n;\r\n" +
	"   CALIENT01TS 16-10-31 15:01:35\r\nM  2 COMPLD\r\n" +
	"   \"1.1.2:WX,NONE,NONE:INAS=OOS-NP,INOS=OOS,INOC=OK,INRS=NPR,OUTAS=OOS-NP,OUTOS=OOS,OUTOC=OK,OUTRS=NPR\"\r\n;\r\nagent>" +
	"\r\n   CALIENT01TS 16-10-31 15:01:36\r\nM  0 COMPLD\r\n" +
	"   \"CALIENT01TS:SERIALNUMBER=C00002227,SWPACKAGE=6.0-3,STATUS=OK,CHASSISTYPE=S162,PLATFORM=VERSION2\"\r\n;\r\nagent>" +
	"\r\n   CALIENT01TS 16-10-31 15:01:36\r\nM  3 DENY\r\n   PLNA\r\n   /* Login Not Active */\r\n;\r\nagent>"

// glimmerglass echoes commands and sends long replies in blocks.
const glimmerglass = "rtrv-cfg-fiber::10001&&10002&20001:1;\r\n" +
	"\r\n   BD0472 16-06-09 17:12:52\r\nM  1 COMPLD\r\n" +
	"   \"GGN:PORTID=10001,PORTGROUP=OpenGroup,PORTNAME=IN1,SIGBAND=1550\"\r\n" +
	"   \"GGN:PORTID=10002,PORTGROUP=OpenGroup,PORTNAME=IN2,SIGBAND=1550\"\r\n>\r\n<\r\n" +
	"\r\n   BD0472 16-06-09 17:12:52\r\nM  1 COMPLD\r\n" +
	"   \"GGN:PORTID=20001,PORTGROUP=OpenGroup,PORTNAME=OUT1,SIGBAND=1550,CSFLTSEV=CR\"\r\n;\r\n<" +
	"ent-crs-fiber::10001,20008:2:::OPMODE=sync;\r\n" +
	"PF 2\r\n<\r\n" +
	"\r\n   BD0472 16-06-09 17:12:53\r\nM  2 COMPLD\r\n;\r\n<"

// gr831 has the forms of GR-831-CORE and of the sample messages in manuals.
const gr831 = "\r\n\n \"PV0414E\" 16-10-19 14:19:37\r\nM 10001 COMPLD\r\n;" +
	"\r\n\n   PV 0414 E 16-10-19 14:19:38\r\n*C 1 REPT ALM EQPT\r\n" +
	"   \"7:CR,LOS,SA,10-19,14-19-38,NEND,RCV:\\\"Port 7; no light\\\"\"\r\n;" +
	"\r\n\n   ( nil ) 16-10-19 14:19:38\r\n** 2.1 REPT ALM ENV\r\n;" +
	"\r\n\n   ( nil ) 16-10-19 14:19:38\r\n*  3 REPT ALM EQPT\r\n;" +
	"\r\n\n   ( nil ) 16-10-19 14:19:38\r\nA  4 REPT EVT PORT\r\n   \"1:SC\"\r\n;" +
	"\n   X 16-10-19 14:19:39\nM  \"Polatis OXC\" COMPLD\n   \"Polatis,6000,OCS,6.7\"\n;\n" +
	"IP 12\r\n>" +
	"\r\n\n   X 16-10-19 14:19:40\r\nM  12 PRTL\r\n   \"1,17\"\r\n   SROF\r\n   /* 1 of 2 done */\r\n;"

func TestGoldenDecode(t *testing.T) {
	for name, stream := range map[string]string{
		"calient": calient, "glimmerglass": glimmerglass, "gr831": gr831,
	} {
		t.Run(name, func(t *testing.T) {
			msgs, errs := decode(t, new(tl1.Decoder), []byte(stream))
			if len(errs) > 0 {
				t.Errorf("decoding the session: %v", errs)
			}
			var b strings.Builder
			for _, m := range msgs {
				fmt.Fprintf(&b, "%v sid=%q date=%q time=%q ctag=%q completion=%q ack=%q alarm=%q atag=%q event=%q code=%q more=%t\n",
					m.Kind, m.SID, m.Date, m.Time, m.CTAG, m.Completion, m.Ack, m.Alarm, m.ATAG, m.Event, m.Code, m.More)
				for _, s := range m.Text {
					fmt.Fprintf(&b, "\ttext    %q\n", s)
				}
				for _, s := range m.Comments {
					fmt.Fprintf(&b, "\tcomment %q\n", s)
				}
				fmt.Fprintf(&b, "\traw     %q\n\tencoded %q\n", m.Raw, tl1.AppendMessage(nil, m, tl1.Style{}))
			}
			checkGolden(t, name, b.String())
		})
	}
}

// TestGoldenOffsets has the commands for which public test suites know the
// offset a Polatis switch reports; the field at fault is named in the second
// column.
func TestGoldenOffsets(t *testing.T) {
	var b strings.Builder
	for _, tt := range []struct {
		command string
		fault   func(tl1.Command) tl1.Field
		want    int
	}{
		{"INIT-SYS::ALARM:::1;", func(c tl1.Command) tl1.Field { return c.CTAG }, 17},
		{"RTRV-EQPT::timeout:::PARAMETER=USER;", func(c tl1.Command) tl1.Field { return c.CTAG }, 20},
		{"ED-DAT::123::31-2016-12;", func(c tl1.Command) tl1.Field { return c.CTAG }, 13},
		{"ACT-USER::admin::123::pw;", func(c tl1.Command) tl1.Field { return c.CTAG }, 17},
		{"ACT-USER:@#@#:admin:123::pw;", func(c tl1.Command) tl1.Field { return c.TID }, 10},
		{"ACT-USER:9942:admin:123::pw;", func(c tl1.Command) tl1.Field { return c.TID }, 10},
		{"RTRV-NE;", func(c tl1.Command) tl1.Field { return c.CTAG }, 8},
		{"RTRV-NE", func(c tl1.Command) tl1.Field { return c.CTAG }, 8},
		{"RTRV-CRS:::::ALL;", func(c tl1.Command) tl1.Field { return c.GB }, 13},
		{"SET-TH-PMON::1&2:9:::MODE=CONT,,LOW=(-30.5,-20),LABEL=\"a,b;c:d\";", func(c tl1.Command) tl1.Field { return c.Block(1).Params[2].Value }, 37},
	} {
		c, err := tl1.ParseCommand([]byte(tt.command))
		if err != nil {
			t.Errorf("ParseCommand(%q): %v", tt.command, err)
		}
		if got := tt.fault(c).Offset; got != tt.want {
			t.Errorf("ParseCommand(%q): offset %d, want %d", tt.command, got, tt.want)
		}
		fmt.Fprintf(&b, "%s\n", tt.command)
		show := func(name string, f tl1.Field) { fmt.Fprintf(&b, "\t%-12s %2d %q\n", name, f.Offset, f.Raw) }
		show("TID", c.TID)
		show("AID", c.AID)
		show("CTAG", c.CTAG)
		show("GB", c.GB)
		for i, blk := range c.Blocks {
			show(fmt.Sprintf("block %d", i+1), blk.Field)
			for _, p := range blk.Params {
				show("  "+p.Name, p.Value)
			}
		}
	}
	checkGolden(t, "offsets", b.String())
}
