package doctor

// checkResult is what one check found.
type checkResult struct {
	Check string     `json:"check"`
	Level checkLevel `json:"level"`
	Text  string     `json:"text"` // one line, and those of a file that it is about, with a caret under what is meant
	Hint  string     `json:"cure,omitempty"`
}

const (
	levelOK      checkLevel = "ok"
	levelWarning checkLevel = "warn"
	levelError   checkLevel = "fail"
)

type checkLevel string
