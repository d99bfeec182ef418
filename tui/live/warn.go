package live

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// Warnings returns a handler that enters what the program warns of in the log. While the UI
// has the terminal it belongs into [slog.SetDefault]: on the terminal, a warning would be
// written across the screen, and be gone with the next frame.
func (s *Session) Warnings() slog.Handler { return &warnings{s: s} }

type warnings struct {
	s     *Session
	attrs []slog.Attr
}

// Enabled reports whether it is a warning or worse.
func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle enters one warning.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	add := func(a slog.Attr) bool {
		text += fmt.Sprintf("; %s: %v", a.Key, a.Value)
		return true
	}
	for _, a := range w.attrs {
		add(a)
	}
	r.Attrs(add)
	w.s.say(Entry{Kind: Event, Text: text, Bad: true})
	return nil
}

// WithAttrs returns a handler that adds attrs to each warning.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w.s, slices.Concat(w.attrs, attrs)}
}

// WithGroup returns w: a line for people has no groups.
func (w *warnings) WithGroup(string) slog.Handler { return w }
