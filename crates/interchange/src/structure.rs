//! Structures of atoms in other programs: chemical symbols, units of length.

/// The Bohr radius in ångström, CODATA 2022.
pub const BOHR: f64 = 0.529_177_210_544;

/// The symbols by atomic number, from hydrogen.
const SYMBOLS: &str = "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As \
    Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm \
    Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db \
    Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og";

/// The atomic number of a chemical symbol; `None` for other names. `X` is an unknown element, number 0.
pub fn atomic_number(symbol: &str) -> Option<u32> {
    if symbol == "X" {
        return Some(0);
    }
    let at = SYMBOLS.split_ascii_whitespace().position(|known| known == symbol)?;
    u32::try_from(at + 1).ok()
}

/// The chemical symbol of an atomic number; `None` beyond the known elements. Number 0 is `X`.
pub fn symbol(number: u32) -> Option<&'static str> {
    let before = usize::try_from(number).ok()?.checked_sub(1);
    before.map_or(Some("X"), |at| SYMBOLS.split_ascii_whitespace().nth(at))
}

/// The atomic number of an element with a label, for example `Fe1` or `O_h`; 0 if the name begins with no symbol.
pub fn labelled_number(label: &str) -> u32 {
    let letters = label.trim().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    (1..=letters.len().min(2)).rev().find_map(|len| atomic_number(&letters[..len])).unwrap_or(0)
}

/// The factor of a unit of length to ångström; 1 for unknown units.
pub fn angstroms(units: Option<&str>) -> f64 {
    match units.map(str::trim) {
        Some("bohr" | "Bohr" | "a0" | "au") => BOHR,
        Some("nm") => 10.0,
        Some("pm") => 0.01,
        Some("m") => 1e10,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{atomic_number, labelled_number, symbol};

    #[test]
    fn symbols_have_their_atomic_numbers() {
        let numbers = ["X", "H", "Si", "Fe", "U", "Og"].map(atomic_number);
        assert_eq!(numbers, [0, 1, 14, 26, 92, 118].map(Some));
        for other in ["", "A", "si", "HE", "Fe1"] {
            assert_eq!(atomic_number(other), None, "{other}");
        }
    }
    #[test]
    fn labels_begin_with_a_symbol() {
        let numbers = ["Fe1", "O_h", "Si", "C-pbe", "Xx", "1H", ""].map(labelled_number);
        assert_eq!(numbers, [26, 8, 14, 6, 0, 0, 0]);
        assert_eq!([0, 1, 26, 119].map(symbol), [Some("X"), Some("H"), Some("Fe"), None]);
    }
}
