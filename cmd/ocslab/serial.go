package main

import (
	"cmp"

	"github.com/ocslab/ocslab/drivers/transport"
)

type serialLine struct {
	Kind    string `json:"kind"` // "serial-port"
	Path    string `json:"path"`
	ByID    string `json:"by_id"` // stays the same wherever the adapter is plugged in; "" if there is none
	USB     bool   `json:"usb"`
	VID     string `json:"vid"`
	PID     string `json:"pid"`
	Serial  string `json:"serial"`
	Product string `json:"product"`
}

// showSerialPorts lists the serial lines of this machine.
func (a *app) showSerialPorts() error {
	list, err := transport.SerialPorts()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.printf("this machine has no serial line\n")
	}
	t := table{}
	if len(list) > 0 {
		t.row("PATH", "USB", "SERIAL", "PRODUCT", "URL")
	}
	for _, p := range list {
		if a.set.JSON {
			a.json(serialLine{"serial-port", p.Path, p.ByID, p.USB, p.VID, p.PID, p.Serial, p.Product})
			continue
		}
		usb := "-"
		if p.USB {
			usb = p.VID + ":" + p.PID
		}
		t.row(p.Path, usb, cmp.Or(p.Serial, "-"), cmp.Or(p.Product, "-"), "tl1+serial://"+cmp.Or(p.ByID, p.Path))
	}
	if !a.set.JSON {
		t.write(a.out, "")
	}
	return nil
}
