// Sets the chosen colours before the page is drawn.
"use strict";
{
  const theme = localStorage.getItem("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
}
