"""What is known of servers beyond their dialect: cards, refusals, waits, parameters they want otherwise."""
