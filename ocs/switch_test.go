package ocs_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Ensure that the receipt of several requests has the times of the last, and
// when the first began.
func TestReceipt_Then(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	first := ocs.Receipt{SendStart: at(1), Sent: at(2), FirstByte: at(3), Acked: at(4), Requests: 1}
	second := ocs.Receipt{SendStart: at(5), Sent: at(6), FirstByte: at(7), Acked: at(8), Requests: 2}
	var none ocs.Receipt
	one := none.Then(first)
	if want := (ocs.Receipt{Begun: at(1), SendStart: at(1), Sent: at(2), FirstByte: at(3), Acked: at(4), Requests: 1}); !reflect.DeepEqual(one, want) {
		t.Errorf("got %+v, want %+v", one, want)
	}
	if got, want := one.Then(second), (ocs.Receipt{Begun: at(1), SendStart: at(5), Sent: at(6), FirstByte: at(7), Acked: at(8), Requests: 3}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := one.Then(none); !reflect.DeepEqual(got, one) {
		t.Errorf("got %+v, want %+v", got, one)
	}
}
