package cli

import (
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// cellSettings prints the settings of the cell.
func (c *invocation) cellSettings() error {
	var all []negotiator.CellSetting
	if err := c.cellObjects("settings", &all); err != nil {
		return err
	}
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{"settings": all})
	}
	t := &textTable{columns: []tableColumn{{head: "SETTING"}, {head: "VALUE", minWidth: 12},
		{head: "SET BY", dropPriority: 1}, {head: "WHAT", minWidth: 20, dropPriority: 2}}}
	for _, s := range all {
		value, colour := s.Value, ""
		if s.SetBy != "" {
			colour = bold
		}
		t.addRow(tableCell{s.Name, ""}, tableCell{printableText(value), colour}, tableCell{printableText(s.SetBy), dim},
			tableCell{s.Description, dim})
	}
	t.dropEmptyColumns("SET BY")
	t.print(c.stdout, c.out)
	return nil
}

// cellSet changes one setting.
func (c *invocation) cellSet(name, value string) error {
	if value == "" {
		return withHint(usageErrorf("an empty value is none"),
			"put it back to its default with: roost cell unset "+name)
	}
	return c.patchObject(ledger.KindSetting, objectPatch{"name": name, "value": value})
}
