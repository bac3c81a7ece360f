"""Why something waits, in one line: the reason and its sentence, which conditions and events, plans and explanations all begin with."""
