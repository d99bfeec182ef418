package timeline

// Duration is how long after the command of its reconfiguration one subject reached a
// stage, or, if the Interval ends at [Never], how long it certainly had not.
type Duration struct {
	Reconfiguration int
	Stage           Stage
	Subject, Host   string
	Interval        // since the command
}

// Durations returns what [Summarize] pools, by stage in canonical order, then by
// reconfiguration, subject and host. The command, being 0, is not among it; nor is what
// was expected and not seen.
func Durations(marks []Mark) []Duration {
	c := collect(marks)
	n := 0
	for _, s := range c.stages {
		n += len(s.events)
	}
	durations := make([]Duration, 0, n)
	for _, s := range c.stages {
		for _, e := range s.events {
			who := c.subjects[e.subject]
			durations = append(durations, Duration{c.numbers[e.number], s.stage, who.name, who.host, e.Interval})
		}
	}
	return durations
}
