package ledger

// CellSetting is one setting of the cell, for programs and people.
type CellSetting struct {
	Name        string   `json:"name"`
	Value       string   `json:"value"`
	Default     string   `json:"default"`
	Form        string   `json:"form"`
	Choices     []string `json:"choices,omitempty"`
	Description string   `json:"what"`
	SetBy       string   `json:"set_by,omitempty"`
}
