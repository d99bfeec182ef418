package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[secret]"

// Secret is a value that does not show itself: whatever formats or encodes it
// writes "[secret]". The zero Secret is no secret. Secrets cannot be compared;
// it is an immutable value, safe for concurrent use.
type Secret struct {
	// A function, as formatters that look into unexported fields, past all
	// methods, find an address in it.
	reveal func() string
}

// New returns the secret value; of the empty text the zero Secret.
func New(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{func() string { return value }}
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.reveal == nil }

// Reveal returns the value, or the empty text if there is no secret.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.reveal()
}

// String returns "[secret]".
func (s Secret) String() string { return redacted }

// GoString returns "[secret]".
func (s Secret) GoString() string { return redacted }

// Format writes "[secret]" for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns "[secret]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[secret]"; it never fails.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON returns "[secret]" as a JSON string; it never fails.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
