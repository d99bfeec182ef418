// Package lab reads the lab file: which switches there are, which hosts and
// NICs, and which fibre leads where.
//
//	name: opus-testbed
//	switches:
//	  - name: rail0
//	    url: tl1://admin@192.0.2.10:3082
//	    password: env:RAIL0_PASSWORD
//	    also: [scpi://192.0.2.10:5025]
//	    emulate: {model: polatis-6000-32x32, switching: 200ms}
//	hosts:
//	  - name: gpu1
//	    nics:
//	      - {name: ens1f0, tx: rail0/1, rx: rail0/33}
//	  - name: gpu2
//	    nics:
//	      - {name: ens1f0, tx: rail0/2, rx: rail0/34}
//	protect: [rail0/31]
//	configurations:
//	  pair:
//	    links:
//	      - [gpu1, gpu2]
//	  loop:
//	    maps:
//	      rail0: 1-2>33-34
//
// tx is the port that the NIC sends into, an ingress of the switch; rx is the
// port that it receives from, an egress. A configuration names what is
// connected: maps by port, links by NIC, or both. It says nothing about other
// ports.
//
//	f, err := lab.Load("lab.yaml")
//	...
//	maps, err := f.Config("pair") // rail0: 1>34,2>33
//
// Models and firmware notes of the user's, which are paths of files, are beside the lab
// file unless they are absolute, as are secrets and trees.
//
// also lists other URLs of the same device: by whichever it is opened, it is that switch, with its protection, leases,
// history and turn; see [Lab.Open].
//
// # Cables
//
// Boards of transceivers are joined by cables, from a fibre of one (1 or 2, of all of its
// modules) to a fibre of another, module by module and lane by lane, both ways:
//
//	switches:
//	  - {name: n1-r, emulate: {model: ocstrx-8x112g-x8}}
//	  - {name: n2-l, emulate: {model: ocstrx-8x112g-x8}}
//	cables:
//	  - {a: n1-r/1, b: n2-l/1, loss_db: 1.5}
//
// In an emulated lab what one board sends into a cable the other one hears, at the time at
// which it is sent, as long as both are there: see [Cabling]. A fibre has one cable, and both
// boards have as many modules. loss_db is that of each fibre of the cable, 0 unless it is said.
//
// # Planted faults
//
// An emulated lab need not be as its file says. What emulate says of a NIC is where its
// fibres really are and what they lose ([NICEmulate]), what it says of a switch is what
// is bad inside ([Emulate]), what it says of a cable is where its ends really are, and whether
// it passes light ([CableEmulate]). Only the emulation reads it: tx and rx stay what the lab file
// claims, to [File.Sender], [File.Link] and everybody else.
//
// Files are read strictly: an unknown key, a wrong type, a port that two NICs
// claim, a name that nothing has, a password where a reference belongs — each
// is an [Error] with file, line, column and one sentence, and all of them are
// reported at once ([Errors]). What only the device can know is not checked:
// whether it has the port, and in that role.
//
// Names begin with a letter or digit and go on with letters, digits, '.', '_'
// and '-'. Case counts: rail0 and Rail0 are two switches.
//
// A [File] from [Parse] must not be changed; it is then safe for concurrent
// use.
package lab
