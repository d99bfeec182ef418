// Package rail is the orchestrator of a rail: it turns topology IDs and circuits of a job into
// cross-connects of one optical switch, safely.
//
//	o, err := rail.New(ctx, rail.Options{Rail: "rail0", Job: job, Policy: opus.Pair, Assignment: cabled, Sessions: sessions, Dir: dir})
//	...
//	err = rail.Serve(ctx, listener, map[string]*rail.Orchestrator{"rail0": o})
//
// A controller in the same process uses the [Orchestrator] itself, another one a [Client].
//
// # Order
//
// Each request takes a ticket for the duplex ports that it concerns, in the order of the calls, and what the
// rail shall hold afterwards is decided in the same moment. So requests on the same ports are carried
// out one after another, on other ports at the same time, and no two can lose an update of each other. A request:
//
//  1. disconnects what only goes dark, reads back, and gives those ports to the next;
//  2. connects; what has to move relies on the device to take ports over, and the driver knows better where it does not;
//  3. reads back, and compares the ports that it had asked for;
//  4. where the switch has power monitors, waits until they show the light of its circuits.
//
// A port that goes dark only because its peer gets another one is not kept until the end, on devices that take over
// busy ports, which is found out from the first change that shows it: a request that adds at such a port may come past. In whichever
// order the two commands arrive the map is the same, since neither removes anything by name at a port of the other and what
// they add has no port in common. The first does not compare such a port: its old circuit is gone when the other end has its new
// peer. A repetition keeps away from ports where somebody came past. Other devices are sent all removals first.
//
// A request may find, when it reads, that a port which is not its own leads to one of its own. Devices remove whatever begins at
// a port, so that port is kept from others until the removal is answered.
//
// A request that changes nothing sends no command. Those that are ready while all sessions with the switch are busy
// are carried out with one command.
//
// # Light
//
// Circuits that are connected and dark fail the change, unless no light comes in. A request looks at the circuits that
// it made and, where it had to read what its ports hold, at all that it wants there. See [Options.Verify].
//
// # Failures
//
// An attempt that fails is followed by another, which reads the switch first and sends what is missing. After
// the last the request fails, and so do those behind it that rely on it: on its ports, or by
// naming a topology ID that includes its digits. Requests under way on other ports are not concerned. The ports of a
// failed request are unsure from then on: the switch is read before the next command that concerns them, since an
// answer that did not come may still take effect.
//
// Circuits that lead from a port of the job to a port that is not the job's are somebody else's. They are never
// removed under [ocs.Safe] where they were seen: a change that succeeds needs no reading before it, and the switch has no
// lock, so what somebody put at a port of the job since it was last read can be taken over by the next change of
// that port. Circuits between other ports are never touched, and not compared.
//
// # Journal
//
// The journal is one file for a job on a rail, of lines of JSON, appended with one write each: what is about to be
// done before the first command, what became of it after it was read back, and epochs. It is not flushed to the
// disk: it is there for the next process, and the kernel keeps it when a process dies, however it dies. When
// the machine loses power the last lines may be missing; then the switch may hold what the journal does not tell of, the
// start reads that back and brings the rail to what the journal has last, or, where it has nothing, to the
// giant ring. No controller holds a grant then, since an epoch goes up with every start. A line that was torn is moved
// aside. The journal is written anew at each start.
package rail
