package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/netconfserver"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/emulator/scpiserver"
	"github.com/ocslab/ocslab/emulator/serialline"
	"github.com/ocslab/ocslab/emulator/sshserver"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/ocs"
)

// Endpoint is a way to reach an emulated switch, named like the scheme of its
// URL.
type Endpoint string

const (
	TL1        Endpoint = "tl1"
	TL1SSH     Endpoint = "tl1+ssh"
	SCPI       Endpoint = "scpi"
	NETCONF    Endpoint = "netconf"
	NETCONFTLS Endpoint = "netconf+tls"
	// Serial is a pseudo-terminal at a path; it understands what the model
	// speaks of TL1 and SCPI, and goes by the first command of a session.
	Serial Endpoint = "serial"
	// The ways to speak to Serial, in URLs only.
	TL1Serial    Endpoint = "tl1+serial"
	SCPISerial   Endpoint = "scpi+serial"
	OCSTrxSerial Endpoint = "ocstrx+serial"
	// OCSTrx is the controller link of a board of transceivers over TCP.
	OCSTrx Endpoint = "ocstrx"
)

// Emulation is how to emulate one switch.
type Emulation struct {
	Name        string // default: the model
	Personality emulator.Personality
	// Transceivers, if not nil, makes it a board of transceivers; Personality,
	// Light, Memory, TLS and Faults are then not used.
	Transceivers *Transceivers
	Cabling      *Cabling // joins it to the others that have the same one; nil joins nothing
	Seed         uint64
	Light        map[ocs.Port]ocs.DBm // from outside; nil lights every ingress port
	Memory       emulator.Memory      // nil forgets
	// Listen says where to serve what: an address, "" for a free port of
	// 127.0.0.1, or the path of a link for Serial. Nil serves First.
	Listen map[Endpoint]string
	First  Endpoint    // that URL returns; default the first protocol that the model speaks
	TLS    *tls.Config // of NETCONFTLS: certificate, and the authorities of clients
	Faults []emulator.Fault
}

// polatis reports whether a model has the usual dialect of TL1.
func polatis(d emulator.TL1Dialect) bool { return d == "" || d == emulator.PolatisTL1 }

// Endpoints returns every way to reach a model over TCP without certificates.
func Endpoints(p emulator.Personality) []Endpoint {
	var list []Endpoint
	for _, s := range p.Speaks {
		switch s {
		case emulator.SpeaksTL1:
			list = append(list, TL1)
			if polatis(p.TL1.Dialect) {
				list = append(list, TL1SSH)
			}
		case emulator.SpeaksSCPI:
			list = append(list, SCPI)
		case emulator.SpeaksNETCONF:
			list = append(list, NETCONF)
		}
	}
	return list
}

// Emulated is an emulated switch that serves clients.
type Emulated struct {
	// One of the two is not nil.
	Device *emulator.Device
	Board  *ocstrx.Board
	// Endpoints are the addresses it listens on.
	Endpoints map[Endpoint]string
	// HostKey is the fingerprint of its SSH key. It follows from name and seed.
	HostKey string

	cabling *Cabling
	first   Endpoint
	stop    context.CancelFunc
	servers sync.WaitGroup
	ended   chan struct{} // closed when one of them has ended

	mu  sync.Mutex // guards err
	err error
}

// Start listens and serves until Close. An address that is in use or not one
// of this machine is an error that names it.
func (e Emulation) Start() (*Emulated, error) {
	if e.Transceivers != nil {
		return e.startBoard()
	}
	if e.Name == "" {
		e.Name = e.Personality.Model
	}
	dev, err := emulator.New(e.Personality, emulator.Options{Name: e.Name, Seed: e.Seed, Light: e.Light, Memory: e.Memory})
	if err != nil {
		return nil, err
	}
	p := dev.Personality()
	if e.First == "" {
		e.First = Endpoint(p.Speaks[0])
	}
	if e.Listen == nil {
		e.Listen = map[Endpoint]string{e.First: ""}
	}
	key := sshserver.HostKey(e.Name, e.Seed)
	r := &Emulated{Device: dev, HostKey: sshserver.Fingerprint(key)}
	if err := r.serve(e, e.frontEnds(dev, key).listen); err != nil {
		return nil, err
	}
	return r, nil
}

// serve begins to serve all that e asks for; listen opens an endpoint. After an
// error nothing is served.
func (e *Emulated) serve(em Emulation, listen func(Endpoint, string) (func(context.Context) error, string, error)) error {
	ctx, stop := context.WithCancel(context.Background())
	e.Endpoints, e.first, e.stop, e.ended = map[Endpoint]string{}, em.First, stop, make(chan struct{})
	for _, at := range slices.Sorted(maps.Keys(em.Listen)) {
		serve, address, err := listen(at, em.Listen[at])
		if err != nil {
			return errors.Join(fmt.Errorf("emulated switch %s: cannot serve %s: %w", em.Name, at, err), e.Close())
		}
		e.Endpoints[at] = address
		e.servers.Go(func() { e.end(serve(ctx)) })
	}
	if _, there := e.Endpoints[em.First]; !there && len(e.Endpoints) > 0 {
		e.first = slices.Min(slices.Collect(maps.Keys(e.Endpoints)))
	}
	return nil
}

// Name returns the name of the switch.
func (e *Emulated) Name() string {
	if e.Board != nil {
		return e.Board.Name()
	}
	return e.Device.Name()
}

// Model returns what it is a model of.
func (e *Emulated) Model() string {
	if e.Board != nil {
		return e.Board.Model()
	}
	return e.Device.Personality().Model
}

// frontEnds are the languages of one device.
type frontEnds struct {
	dev     *emulator.Device
	tl1     *tl1server.Server
	scpi    *scpiserver.Server
	netconf *netconfserver.Server
	key     ssh.Signer
	tls     *tls.Config
}

func (e Emulation) frontEnds(dev *emulator.Device, key ssh.Signer) *frontEnds {
	f := &frontEnds{
		dev: dev, tl1: &tl1server.Server{Device: dev}, scpi: &scpiserver.Server{Device: dev},
		netconf: &netconfserver.Server{Device: dev}, key: key, tls: e.TLS,
	}
	for _, fault := range e.Faults {
		f.tl1.Faults.Add(fault)
		f.scpi.Faults.Add(fault)
		f.netconf.Faults.Add(fault)
	}
	return f
}

// listen opens an endpoint and returns what serves it, and where it is.
func (f *frontEnds) listen(at Endpoint, address string) (serve func(context.Context) error, where string, err error) {
	p := f.dev.Personality()
	needs := map[Endpoint]emulator.Protocol{
		TL1: emulator.SpeaksTL1, TL1SSH: emulator.SpeaksTL1, SCPI: emulator.SpeaksSCPI,
		NETCONF: emulator.SpeaksNETCONF, NETCONFTLS: emulator.SpeaksNETCONF,
	}
	if protocol, known := needs[at]; known && !p.Has(protocol) {
		return nil, "", fmt.Errorf("the model %s does not speak %s", p.Model, protocol)
	}
	if at == Serial {
		return onSerialLine(address, f.serial())
	}
	if at == NETCONFTLS && f.tls == nil {
		return nil, "", errors.New("there is no certificate")
	}
	l, err := listenTCP(address)
	if err != nil {
		return nil, "", err
	}
	shell := &sshserver.Server{Device: f.dev, HostKey: f.key}
	switch at {
	case TL1:
		serve = func(ctx context.Context) error { return f.tl1.Serve(ctx, l) }
	case SCPI:
		serve = func(ctx context.Context) error { return f.scpi.Serve(ctx, l) }
	case NETCONFTLS:
		serve = func(ctx context.Context) error { return f.netconf.ServeTLS(ctx, l, f.tls) }
	case TL1SSH:
		shell.Shell = f.tl1
		serve = func(ctx context.Context) error { return shell.Serve(ctx, l) }
	case NETCONF:
		f.netconf.Record()
		shell.Subsystems = map[string]emulator.FrontEnd{"netconf": f.netconf}
		serve = func(ctx context.Context) error { return shell.Serve(ctx, l) }
	default:
		l.Close()
		return nil, "", errors.New("there is no such endpoint")
	}
	return serve, l.Addr().String(), nil
}

// listenTCP listens on a free loopback port where no address is given.
func listenTCP(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	return net.Listen("tcp", address)
}

// onSerialLine makes a serial line and returns what serves it, and where it is.
func onSerialLine(path string, fe emulator.FrontEnd) (serve func(context.Context) error, where string, err error) {
	line, err := serialline.Listen(path)
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context) error { return line.Serve(ctx, fe) }, line.Link(), nil
}

// end keeps why a server has ended.
func (e *Emulated) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
	select {
	case <-e.ended:
	default:
		close(e.ended)
	}
}

// URL returns the address for a driver, of the endpoint that comes first.
func (e *Emulated) URL() string { return e.URLs()[e.first] }

// URLs returns the addresses for drivers, with what they have to know: the key
// of the host, the dialect, the pause that the model needs.
func (e *Emulated) URLs() map[Endpoint]string {
	if e.Board != nil {
		return e.boardURLs()
	}
	p := e.Device.Personality()
	urls := map[Endpoint]string{}
	add := func(at Endpoint, u url.URL) {
		query := url.Values{}
		switch base, carrier, _ := strings.Cut(string(at), "+"); {
		case base == "tl1" && !polatis(p.TL1.Dialect):
			query.Set("dialect", string(p.TL1.Dialect))
		case base == "scpi" && p.SCPI.Gap > 0:
			query.Set("gap", (2 * p.SCPI.Gap).String())
		case carrier == "ssh", at == NETCONF:
			query.Set("hostkey", e.HostKey)
		}
		u.Scheme, u.RawQuery = string(at), query.Encode()
		urls[at] = u.String()
	}
	for at, address := range e.Endpoints {
		switch {
		case at == Serial && p.Has(emulator.SpeaksTL1):
			add(TL1Serial, url.URL{Path: address})
		case at == SCPI || at == NETCONFTLS:
			add(at, url.URL{Host: address})
		case at != Serial:
			add(at, url.URL{User: url.User("admin"), Host: address})
		}
		if at == Serial && p.Has(emulator.SpeaksSCPI) {
			add(SCPISerial, url.URL{Path: address})
		}
	}
	if line, there := urls[TL1Serial]; there {
		urls[Serial] = line
	} else if line, there := urls[SCPISerial]; there {
		urls[Serial] = line
	}
	return urls
}

// Wait returns when ctx ends, or earlier when the device can no longer be
// served, with the reason.
func (e *Emulated) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-e.ended:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.err
	}
}

// Close ends every session and returns when they have ended.
func (e *Emulated) Close() error {
	e.cabling.unplug(e.Name())
	e.stop()
	e.servers.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
