"""How providers speak: their requests read as chats, their replies, streams, errors and batches written."""
