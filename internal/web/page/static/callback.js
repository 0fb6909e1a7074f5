// The page where an OpenID provider leads back to sends its form by itself. The code goes
// out of the address and the history first.
"use strict";
history.replaceState(null, "", location.pathname);
document.querySelector("form[data-submit]").submit();
