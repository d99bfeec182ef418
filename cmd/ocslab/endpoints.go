package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/lab"
)

// endpointFlags say where an emulated switch is served.
type endpointFlags struct {
	tl1, tl1ssh, scpi, netconf, netconfTLS string
	cert, key, ca                          string
	serial, ocstrx                         string
}

func (e *endpointFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.tl1, "tl1", "", "`ADDR`ess to serve TL1 on, or none (default a free port of 127.0.0.1)")
	f.StringVar(&e.tl1ssh, "tl1-ssh", "", "`ADDR`ess to serve TL1 over SSH on, or none (the same)")
	f.StringVar(&e.scpi, "scpi", "", "`ADDR`ess to serve SCPI on, or none (the same)")
	f.StringVar(&e.netconf, "netconf", "", "`ADDR`ess to serve NETCONF over SSH on, or none (the same)")
	f.StringVar(&e.netconfTLS, "netconf-tls", "", "`ADDR`ess to serve NETCONF over TLS on; with --tls-cert, --tls-key and --tls-ca")
	f.StringVar(&e.cert, "tls-cert", "", "`FILE` with the certificate of the switch, PEM")
	f.StringVar(&e.key, "tls-key", "", "`FILE` with its private key, PEM")
	f.StringVar(&e.ca, "tls-ca", "", "`FILE` with the authorities of client certificates, PEM; a client is the user that its certificate names (CN)")
	f.StringVar(&e.ocstrx, "ocstrx", "", "`ADDR`ess to serve the controller link of transceivers on, or none (the same)")
	f.StringVar(&e.serial, "serial", "", "`PATH` of a link to make to a pseudo-terminal, for TL1 and SCPI, or the controller link")
}

// given reports whether an address is set, which is for one switch.
func (e *endpointFlags) given() bool {
	for _, s := range []string{e.tl1, e.tl1ssh, e.scpi, e.netconf, e.netconfTLS, e.ocstrx} {
		if s != "" && s != "none" {
			return true
		}
	}
	return e.serial != ""
}

// set says what is to be served where. What the model does not speak is left
// out, unless it was asked for.
func (e *endpointFlags) set(em *lab.Emulation) error {
	em.Listen = map[lab.Endpoint]string{}
	if em.Transceivers != nil {
		em.Listen[lab.OCSTrx] = ""
	} else {
		for _, at := range lab.Endpoints(em.Personality) {
			em.Listen[at] = ""
		}
	}
	_, netconf := em.Listen[lab.NETCONF] // TLS is left out unless asked for
	for at, address := range map[lab.Endpoint]string{
		lab.TL1: e.tl1, lab.TL1SSH: e.tl1ssh, lab.SCPI: e.scpi, lab.NETCONF: e.netconf, lab.NETCONFTLS: e.netconfTLS, lab.OCSTrx: e.ocstrx,
	} {
		_, spoken := em.Listen[at]
		switch {
		case address == "":
		case address == "none":
			delete(em.Listen, at)
		case !spoken && (at != lab.NETCONFTLS || !netconf):
			return usagef("the model %s does not speak %s", em.Model(), at)
		default:
			if err := checkAddress(address); err != nil {
				return usagef("address to serve %s on: %w", at, err)
			}
			em.Listen[at] = address
		}
	}
	if e.serial != "" {
		em.Listen[lab.Serial] = e.serial
	}
	if _, ok := em.Listen[lab.NETCONFTLS]; ok {
		cfg, err := e.tls()
		if err != nil {
			return err
		}
		em.TLS = cfg
	}
	if len(em.Listen) == 0 {
		return usagef("there is nothing left to serve")
	}
	return nil
}

// checkAddress tells a mistake in an address from one that cannot be had.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err
}

func (e *endpointFlags) tls() (*tls.Config, error) {
	if e.cert == "" || e.key == "" || e.ca == "" {
		return nil, usagef("--netconf-tls needs --tls-cert, --tls-key and --tls-ca")
	}
	cert, err := tls.LoadX509KeyPair(e.cert, e.key)
	if err != nil {
		return nil, usageError{fmt.Errorf("certificate of the switch: %w", err)}
	}
	pem, err := os.ReadFile(e.ca)
	if err != nil {
		return nil, usageError{fmt.Errorf("authorities of clients: %w", err)}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usagef("authorities of clients: %s holds no certificate in PEM form", e.ca)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
