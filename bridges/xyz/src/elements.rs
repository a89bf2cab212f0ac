//! Chemical symbols.

/// The symbols by atomic number, from hydrogen.
const SYMBOLS: &str = "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As \
    Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm \
    Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db \
    Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og";

/// The atomic number of a chemical symbol; `None` for other names. `X` is an unknown element, number 0.
pub(crate) fn atomic_number(symbol: &str) -> Option<u32> {
    if symbol == "X" {
        return Some(0);
    }
    let at = SYMBOLS.split_ascii_whitespace().position(|known| known == symbol)?;
    u32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::atomic_number;

    #[test]
    fn symbols_have_their_atomic_numbers() {
        let numbers = ["X", "H", "Si", "Fe", "U", "Og"].map(atomic_number);
        assert_eq!(numbers, [0, 1, 14, 26, 92, 118].map(Some));
        for other in ["", "A", "si", "HE", "Fe1"] {
            assert_eq!(atomic_number(other), None, "{other}");
        }
    }
}
