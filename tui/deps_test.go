package tui

// Held until the code that needs them is there.
import (
	_ "github.com/charmbracelet/bubbles/textinput"
	_ "github.com/charmbracelet/bubbletea"
	_ "github.com/charmbracelet/x/exp/teatest"
)
