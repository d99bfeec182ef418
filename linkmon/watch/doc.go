// Package watch joins all that linkmon can see into one stream of marks: the
// kernel's carrier (package linkmon), the optics of modules (optics), the state
// that firmware reports (phy), and traffic (probe), of the network namespaces of
// this machine and, through agents, of other machines.
//
// Real interfaces and emulated ones are watched by the same code. What an
// emulated host cannot have in the kernel it publishes as a directory tree, see
// [Host.Tree].
//
// # Agents
//
// A host that is another machine runs `ocslab watch --agent`, reached by a command
// such as ssh. It writes records as JSON lines, as `ocslab watch --json` does,
// and answers lines on its standard input:
//
//	{"kind":"clock","id":7}  {"kind":"clock","id":7,"at_ns":123}     its monotonic clock between question and answer
//	{"kind":"flush","id":8}  {"kind":"flush","id":8}                 all that happened before has been written
//	{"kind":"machine","id":9}  {"kind":"machine","id":9,"machine":{...}}  its boot, and for how long it was suspended, see Machine
//	{"kind":"nics",...}, {"kind":"traffic",...}, {"kind":"flows",...}  traffic between agents, see Question
//
// Its marks are brought over to our axis, widened by what the exchanges of clock
// readings leave open ([Clock]).
package watch
