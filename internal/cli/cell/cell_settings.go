package cell

import (
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// cellSettings prints the settings of the cell.
func cellSettings(c *frame.Invocation) error {
	var all []ledger.CellSetting
	if err := admin.CellObjects(c, "settings", &all); err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"settings": all})
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "SETTING"}, {Head: "VALUE", MinWidth: 12},
		{Head: "SET BY", DropPriority: 1}, {Head: "WHAT", MinWidth: 20, DropPriority: 2}}}
	for _, s := range all {
		value, colour := s.Value, ""
		if s.SetBy != "" {
			colour = frame.Bold
		}
		t.AddRow(frame.TableCell{Text: s.Name}, frame.TableCell{Text: document.PrintableText(value), Colour: colour},
			frame.TableCell{Text: document.PrintableText(s.SetBy), Colour: frame.Dim},
			frame.TableCell{Text: s.Description, Colour: frame.Dim})
	}
	t.DropEmptyColumns("SET BY")
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

// cellSet changes one setting.
func cellSet(c *frame.Invocation, name, value string) error {
	if value == "" {
		return frame.WithHint(frame.UsageErrorf("an empty value is none"),
			"put it back to its default with: roost cell unset "+name)
	}
	return admin.PatchObject(c, ledger.KindSetting, admin.ObjectPatch{"name": name, "value": value})
}
